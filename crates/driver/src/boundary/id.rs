// SPDX-License-Identifier: Apache-2.0
//! Identifiers used in commands and events.

/// Id of a send or receive endpoint: the registration id of the command that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EndpointId(pub(crate) i64);

/// Id of a network publication: its registration id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PublicationId(pub(crate) i64);

/// Id of a publication image: its correlation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ImageId(pub(crate) i64);

/// Id of a socket of a receive endpoint: the registration id of its destination, or of the endpoint if it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TransportId(pub(crate) i64);
