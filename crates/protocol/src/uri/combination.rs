// SPDX-License-Identifier: Apache-2.0
//! Validation of parameter combinations, common and per role (docs/spec/uri-and-configuration.md §1.5, §1.9, §1.11).

use super::channel::UdpChannel;
use super::error::UriError;
use super::keywords::ControlMode;
use super::param::{Param, Role};
use super::resolved::check_multicast_data;

impl UdpChannel {
    pub(super) fn check_addresses(&self) -> Result<(), UriError> {
        let by_mode = matches!(
            self.control_mode,
            Some(ControlMode::Manual | ControlMode::Response)
        );
        if self.control_mode == Some(ControlMode::Dynamic) && self.control.is_none() {
            return Err(UriError::invalid(
                "explicit control expected with dynamic control mode: add control=host:port to control-mode=dynamic",
            ));
        }
        if self.endpoint.is_none()
            && self.control.is_none()
            && self.tags.channel.is_none()
            && !by_mode
        {
            return Err(UriError::invalid(
                "URIs for UDP must specify endpoint, control, tags, or control-mode=manual/response",
            ));
        }
        if let Some(endpoint) = &self.endpoint
            && let Some(ip) = endpoint.host.ip()
        {
            check_multicast_data(&endpoint.text, ip)?;
        }
        Ok(())
    }

    pub(super) fn check_timestamps(&self) -> Result<(), UriError> {
        let offsets = [
            (Param::MediaReceiveTimestamp, self.media_receive_timestamp),
            (
                Param::ChannelReceiveTimestamp,
                self.channel_receive_timestamp,
            ),
            (Param::ChannelSendTimestamp, self.channel_send_timestamp),
        ];
        for (i, (first, a)) in offsets.iter().enumerate() {
            for (second, b) in &offsets[i + 1..] {
                if let (Some(a), Some(b)) = (a, b)
                    && a.overlaps(*b)
                {
                    return Err(UriError::rejected(format!(
                        "{first} and {second} overlap: {first}={} {second}={}, must be at least 8 bytes apart",
                        a.bytes(),
                        b.bytes(),
                        first = first.key(),
                        second = second.key(),
                    )));
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_role(&self, role: Role) -> Result<(), UriError> {
        match role {
            Role::Publication => self.check_publication(),
            Role::Subscription => self.check_control_port(),
            Role::SendDestination => self.check_send_destination(),
            Role::ReceiveDestination => {
                self.check_destination()?;
                self.check_control_port()
            }
        }
    }

    fn check_publication(&self) -> Result<(), UriError> {
        match (&self.endpoint, &self.control, self.control_mode) {
            (None, Some(control), None) => Err(UriError::rejected(format!(
                "'control' parameter requires that either 'endpoint' or 'control-mode' is specified: control={}",
                control.text
            ))),
            (Some(endpoint), _, None | Some(ControlMode::Response)) if endpoint.port == 0 => {
                Err(UriError::rejected(format!(
                    "endpoint has port=0 for publication: endpoint={}, name the port to send to",
                    endpoint.text
                )))
            }
            _ => Ok(()),
        }
    }

    fn check_control_port(&self) -> Result<(), UriError> {
        match &self.control {
            Some(control) if control.port == 0 => Err(UriError::rejected(format!(
                "control has port=0 for subscription: control={}, name the port of the sender",
                control.text
            ))),
            _ => Ok(()),
        }
    }

    fn check_destination(&self) -> Result<(), UriError> {
        for spec in Param::ALL
            .iter()
            .filter(|spec| spec.rejected_in_destinations)
        {
            if let Some(value) = self.uri.get(spec.param) {
                return Err(UriError::invalid(format!(
                    "destinations must not contain the key: {}={value} belongs into the channel",
                    spec.key
                )));
            }
        }
        if self.control_mode == Some(ControlMode::Response) {
            return Err(UriError::invalid(
                "destinations may not specify control-mode=response",
            ));
        }
        Ok(())
    }

    fn check_send_destination(&self) -> Result<(), UriError> {
        self.check_destination()?;
        if let Some(backend) = &self.backend {
            return Err(UriError::rejected(format!(
                "destinations of a publication must not contain the key: {}={backend} belongs into the channel, whose \
                 socket sends to all of them",
                Param::Backend.key()
            )));
        }
        match &self.endpoint {
            None => Err(UriError::rejected(
                "incorrect URI format for destination: a destination to send to needs endpoint=host:port",
            )),
            Some(endpoint) if endpoint.port == 0 => Err(UriError::rejected(format!(
                "endpoint has port=0 for send destination: endpoint={}, name the port to send to",
                endpoint.text
            ))),
            Some(_) => Ok(()),
        }
    }
}
