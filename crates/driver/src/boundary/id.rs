//! Identities that cross the boundary.

/// A send or receive endpoint: the registration id of the command that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(pub i64);

/// A network publication: its registration id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicationId(pub i64);

/// A publication image: its correlation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageId(pub i64);

/// One socket of a receive endpoint: the registration id of its destination, or of the endpoint that has no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransportId(pub i64);
