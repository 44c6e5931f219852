/**
 * A short-lived child that proves a process, holds a pidfd on it, and signals it when told to.
 * It is its own process because /proc/<pid>/cmdline of a process stuck in the driver can block a
 * reader for ever; the runtime must not be that reader.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fail, type LandlordError, type Result } from '../../../shared/errors.ts';
import type { ProcessIdentity } from '../process/identity.ts';
import { openPid, type PidHandle } from '../process/pidfd.ts';
import { procfs } from '../process/procfs.ts';
import { differenceFrom } from '../process/same-process.ts';
import type { FromReaper, ToReaper } from './reaper-messages.ts';

/** A killed process with gigabytes on a device takes this long at most before we stop waiting for it. */
const GONE_LIMIT_MS = 10_000;

let armed: { readonly identity: ProcessIdentity; readonly handle: PidHandle } | null = null;

function say(message: FromReaper): void {
  process.send?.(message);
}

function refuse(error: LandlordError): void {
  say({ type: 'refused', error });
}

function prove(identity: ProcessIdentity): Result<void> {
  const [facts] = procfs().facts([identity.pid]);
  const difference = differenceFrom(identity, facts ?? null);
  if (difference !== null)
    return fail('not_proven', `Not signalled: ${difference}. Nothing was touched; look at it by hand.`);
  const me = process.geteuid?.() ?? null;
  if (me !== 0 && facts?.uid !== null && facts?.uid !== me)
    return fail(
      'not_permitted',
      `Process ${identity.pid} runs as user ${facts?.uid}, we run as user ${me}: no signal is permitted. ` +
        "Set `stop-timeout` in the router's preset to a second or two as the next best, or run both as one user.",
    );
  return { ok: true, value: undefined };
}

/** Opens the handle first and proves after: what was proven is then what the handle holds. */
function arm(identity: ProcessIdentity): void {
  const handle = openPid(identity.pid);
  if (!handle.ok) {
    refuse(handle.error);
    return;
  }
  const proof = prove(identity);
  if (proof.ok) {
    armed = { identity, handle: handle.value };
    say({ type: 'armed' });
    return;
  }
  handle.value[Symbol.dispose]();
  refuse(proof.error);
}

async function kill(): Promise<void> {
  if (armed === null)
    return refuse({ code: 'internal', message: 'The reaper was told to signal before it was armed.' });
  const { identity, handle } = armed;
  const proof = prove(identity);
  if (!proof.ok) return refuse(proof.error);
  const sentAtMs = performance.now();
  const sent = handle.kill();
  if (!sent.ok) return refuse(sent.error);
  say({ type: 'signalled', goneAfterMs: await goneAfter(identity, sentAtMs) });
}

async function goneAfter(identity: ProcessIdentity, sentAtMs: number): Promise<number | null> {
  while (performance.now() - sentAtMs < GONE_LIMIT_MS) {
    const stat = procfs().stat(identity.pid);
    if (stat === null || stat.startTimeTicks !== identity.startTimeTicks || stat.state === 'Z')
      return performance.now() - sentAtMs;
    await sleep(5);
  }
  return null;
}

process.on('message', (message: ToReaper) => {
  if (message.type === 'arm') arm(message.identity);
  else void kill();
});
process.on('disconnect', () => process.exit(0));
