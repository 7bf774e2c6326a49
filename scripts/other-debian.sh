# SPDX-License-Identifier: GPL-2.0-only
# Sourced: packages of another suite or architecture of Debian, fetched and unpacked without installing them here. apt
# gets a state of its own; only the mirror, and how it is reached, are this machine's.
#	other_debian SUITE ARCH WORK	from then on `apt-get "${own_state[@]}"` is about that
#	unpack WORK PACKAGE…		into WORK/root

other_debian() { # SUITE ARCH WORK
	local suite=$1 arch=$2 work=$3 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Identifier: Packages' |
		awk '$1 == "Debian" { print $2; exit }')
	[ -n "$mirror" ] || { echo "${0##*/}: apt knows no mirror of Debian here" >&2; return 1; }
	[ -s $keyring ] || { echo "${0##*/}: install debian-archive-keyring" >&2; return 1; }
	mkdir -p "$work"/{lists/partial,archives/partial,none}
	: >"$work/status"
	echo "deb [arch=$arch signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
	own_state=(
		-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts="$work/none"
		-o Dir::Etc::preferences="$work/none/none" -o Dir::Etc::preferencesparts="$work/none"
		-o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work"
		-o APT::Architecture="$arch" -o APT::Architectures::="$arch" -o APT::Sandbox::User=root
		-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false
	)
	apt-get -qq "${own_state[@]}" update
}

unpack() { # WORK PACKAGE…
	local work=$1 deb
	shift
	(cd "$work" && apt-get -qq "${own_state[@]}" download "$@")
	for deb in "$work"/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
}
