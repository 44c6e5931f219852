/** A TCP socket of this machine that takes connections. */
export interface Listener {
  /** As written: `127.0.0.1`, `0.0.0.0`, `::1`, `::`, `192.168.1.5`. */
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

/** Who can open a connection to it. */
export type Reach = 'this machine' | 'the network';

/**
 * The listening sockets of /proc/net/tcp or /proc/net/tcp6 (proc(5)): addresses are 32-bit words in the
 * machine's byte order, little-endian wherever this runs; state 0A is LISTEN.
 */
export function parseListeners(table: string): readonly Listener[] {
  return table.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    const [address, port] = (fields[1] ?? '').split(':');
    if (fields[3] !== '0A' || address === undefined || port === undefined) return [];
    const written = addressOf(address);
    return written === null
      ? []
      : [{ address: written, port: Number.parseInt(port, 16), inode: fields[9] ?? '' }];
  });
}

function addressOf(hex: string): string | null {
  if (!/^([0-9A-Fa-f]{8}|[0-9A-Fa-f]{32})$/.test(hex)) return null;
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) =>
    (word.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16)).reverse(),
  );
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, at) => ((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0));
  // ::ffff:127.0.0.1 is the IPv4 address.
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff)
    return bytes.slice(12).join('.');
  return shortened(groups.map((group) => group.toString(16)));
}

/** The longest run of zero groups as `::` (RFC 5952). */
function shortened(groups: readonly string[]): string {
  let best = { at: -1, length: 1 };
  for (let at = 0; at < groups.length; at += 1) {
    let length = 0;
    while (groups[at + length] === '0') length += 1;
    if (length > best.length) best = { at, length };
  }
  if (best.at < 0) return groups.join(':');
  const head = groups.slice(0, best.at).join(':');
  return `${head}::${groups.slice(best.at + best.length).join(':')}`;
}

export function reachOf(address: string): Reach {
  return /^127\./.test(address) || address === '::1' ? 'this machine' : 'the network';
}
