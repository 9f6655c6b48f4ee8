//! Datagram backends behind one batch interface.


