import { checkGate } from '../core/gate/gate-check.ts';
import type { Invocation } from './arguments.ts';
import type { Run } from './commands.ts';
import { doctorMachine } from './doctor-machine.ts';
import { doctorSecurity } from './doctor-security.ts';
import { doctorServers } from './doctor-servers.ts';
import { EXIT } from './exit-codes.ts';
import { paint, plain } from './terminal.ts';

/** One thing that was looked at. `skipped`: it can't be looked at here, and `detail` says why. */
export interface DoctorCheck {
  readonly name: string;
  readonly outcome: 'ok' | 'failed' | 'skipped';
  /** Sentences; the first says the result, the others what was seen. */
  readonly detail: readonly string[];
}

export interface DoctorSection {
  readonly title: string;
  readonly checks: readonly DoctorCheck[];
}

/** Each looks at one part of the machine; none changes anything that is in use. */
const SECTIONS: readonly ((invocation: Invocation) => Promise<DoctorSection>)[] = [
  (invocation) => checkGate({ backend: invocation.text('backend') }),
  (invocation) => doctorServers(invocation),
  doctorMachine,
];

/** Asked for by itself: it says who may do what, and not whether it works. */
const SECURITY: typeof SECTIONS = [doctorSecurity];

export const runDoctor: Run = async (invocation, terminal) => {
  const sections: DoctorSection[] = [];
  for (const look of invocation.flag('security') ? SECURITY : SECTIONS) {
    const section = await look(invocation);
    sections.push(section);
    if (invocation.flag('json')) continue;
    terminal.out(paint(terminal, 'bold', section.title));
    for (const check of section.checks) {
      const tone = check.outcome === 'failed' ? 'bad' : check.outcome === 'ok' ? 'good' : 'quiet';
      const [first = '', ...rest] = check.detail.map(plain);
      terminal.out(`  ${paint(terminal, tone, check.outcome.padEnd(7))} ${plain(check.name)}: ${first}`);
      for (const line of rest) terminal.out(`          ${line}`);
    }
  }
  if (invocation.flag('json')) terminal.out(JSON.stringify({ sections }));
  return sections.some((section) => section.checks.some((check) => check.outcome === 'failed'))
    ? EXIT.failed
    : EXIT.done;
};
