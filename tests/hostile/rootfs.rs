//! Images whose own `/dev`, `/proc`, `/sys` or links lead to the host when a container is created.
