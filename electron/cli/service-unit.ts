/** The systemd user unit that runs `landlord serve` with the user's session (systemd.service(5), systemd.unit(5)). */
import { isAbsolute, join } from 'node:path';

export const UNIT_NAME = 'vram-landlord.service';

/** The first line of a unit of ours; another's is neither overwritten nor removed. */
export const UNIT_MARK = '# Written by `landlord service install`; `landlord service uninstall` removes it.';

export interface UnitOptions {
  /** The `landlord` command; absolute, and there to stay. */
  readonly launcher: string;
  /** After `serve`. */
  readonly args: readonly string[];
}

/** Where user units are looked for first; systemd honours XDG_CONFIG_HOME too. */
export function unitFile(env: Readonly<Record<string, string | undefined>>, home: string): string {
  const { XDG_CONFIG_HOME: configHome } = env;
  const base = configHome !== undefined && isAbsolute(configHome) ? configHome : join(home, '.config');
  return join(base, 'systemd', 'user', UNIT_NAME);
}

export function unitText({ launcher, args }: UnitOptions): string {
  return `${UNIT_MARK}
[Unit]
Description=VRAM Landlord, the guard of this machine's GPU memory

[Service]
Type=exec
ExecStart=${[launcher, 'serve', ...args].map(quoted).join(' ')}
# While the desktop app hosts a runtime this one can not start; it takes over when the app is gone.
Restart=on-failure
RestartSec=15
# The servers that it runs end first.
TimeoutStopSec=40
# One of its children that the kernel ends for memory is started anew; that is no reason to stop.
OOMPolicy=continue

[Install]
WantedBy=default.target
`;
}

/** One word of an ExecStart line: quotes, backslashes, specifiers and variables mean themselves, and no line break begins a line of its own. */
export function quoted(word: string): string {
  const plain = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
  if (/^[\w@%+=:,./$-]+$/.test(plain)) return plain;
  const escaped = plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  // As in C (systemd.service(5), "Command lines").
  return `"${escaped.replaceAll(/\p{Cc}/gu, (control) => `\\u${hex(control)}`)}"`;
}

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, '0');
}
