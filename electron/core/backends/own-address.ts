import { hostname, networkInterfaces } from 'node:os';

/** Host without brackets, and the port, the scheme's own when none is written. */
export function hostAndPort(url: string): { readonly host: string; readonly port: number } {
  try {
    const parsed = new URL(url);
    const port = parsed.port === '' ? (parsed.protocol === 'https:' ? 443 : 80) : Number(parsed.port);
    return { host: parsed.hostname.replace(/^\[|\]$/g, ''), port };
  } catch {
    return { host: '', port: 0 };
  }
}

/**
 * Whether a host is this machine, so that a process here may be the server meant. Asks no DNS:
 * loopback spellings, the machine's name and the addresses of its interfaces.
 */
export function isThisMachine(host: string): boolean {
  const wanted = host.toLowerCase();
  if (wanted === 'localhost' || wanted.endsWith('.localhost') || /^127\./.test(wanted)) return true;
  if (wanted === '::1' || wanted === '0.0.0.0' || wanted === '::') return true;
  if (wanted === hostname().toLowerCase()) return true;
  return Object.values(networkInterfaces()).some((addresses) =>
    (addresses ?? []).some(({ address }) => address.toLowerCase() === wanted),
  );
}
