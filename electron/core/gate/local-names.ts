import { readFileSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { canonicalHost, isLoopback, type LocalNames } from './lane-key.ts';

export interface LocalNameSources {
  readonly hostname: string;
  /** Addresses of this machine's interfaces, any spelling. */
  readonly addresses: readonly string[];
  /** The text of /etc/hosts; '' where there is none. */
  readonly hosts: string;
}

/**
 * What this machine calls itself: its interfaces' addresses, its hostname (short, full, and as mDNS
 * has it, RFC 6762: `<short>.local`), and every name /etc/hosts gives to one of its addresses.
 */
export function localNames(sources: LocalNameSources): LocalNames {
  const own = new Set(sources.addresses.map(canonicalHost));
  const host = canonicalHost(sources.hostname);
  const short = host.split('.')[0] ?? '';
  for (const name of [host, short, `${short}.local`]) if (short !== '') own.add(name);
  for (const { address, names } of parseHosts(sources.hosts)) {
    if (!isLoopback(address) && !own.has(address)) continue;
    for (const name of names) own.add(name);
  }
  return { has: (name) => own.has(name) };
}

/** hosts(5): address, then names; a comment to the end of its line. */
export function parseHosts(
  text: string,
): readonly { readonly address: string; readonly names: readonly string[] }[] {
  return text.split(/\r?\n/).flatMap((line) => {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (address === undefined || address === '' || names.length === 0) return [];
    return [{ address: canonicalHost(address), names: names.map(canonicalHost) }];
  });
}

/** Read anew each time: a laptop's addresses come and go. */
export function readLocalNames(): LocalNames {
  const interfaces = Object.values(networkInterfaces());
  return localNames({
    hostname: hostname(),
    addresses: interfaces.flatMap((entries) => entries?.map((entry) => entry.address) ?? []),
    hosts: readText(process.platform === 'win32' ? windowsHosts() : '/etc/hosts'),
  });
}

function windowsHosts(): string {
  return `${process.env.SystemRoot ?? 'C:\\Windows'}\\System32\\drivers\\etc\\hosts`;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
