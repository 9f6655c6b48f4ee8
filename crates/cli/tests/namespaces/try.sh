# SPDX-License-Identifier: Apache-2.0
# Whether all that tests between machines do can be done here: two of them, and a cable that loses. Begun in a network and
# a mount namespace of its own, with which all of it goes again.
set -e
mount -t tmpfs tmpfs /run
ip netns add one
ip netns add two
ip link add name a netns one type veth peer name b netns two
ip netns exec one nft add table inet try
ip netns exec one nft add chain inet try in '{ type filter hook input priority 0; }'
ip netns exec one nft add rule inet try in numgen random mod 100 '<' 5 counter drop
