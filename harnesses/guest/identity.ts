/** What this guest is: sha256 of its one file with 64 zeros in this place, where the bundler then writes it. */
export const GUEST_DIGEST = '0000000000000000000000000000000000000000000000000000000000000000';
