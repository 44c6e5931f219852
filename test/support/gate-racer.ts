/**
 * A process that uses the gate as an agent does:
 *   hold URL SESSION                   takes the lane, says `held` (or what it got), keeps it until its input ends
 *   wait URL SESSION CLASS WAIT_MS LOG waits for it, appends its session to the log, lets go; with `-` as hold does
 *   race URL SESSION TURNS LOG         takes that many turns, each logged as `+ SESSION` and `- SESSION`
 *   root                               says where its root is
 * GATE_BREAK=home resolves the root from HOME, as it must not be.
 */
import { once } from 'node:events';
import { appendFileSync, openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { acquireTurn } from '../../electron/core/gate/acquire.ts';
import { createGate } from '../../electron/core/gate/gate.ts';

const broken = process.env.GATE_BREAK === 'home';
const gate = broken
  ? createGate({ passwdHome: () => process.env.HOME ?? null, machineWideRoot: '/nonexistent' })
  : createGate();
const [mode, url = '', session = '', ...rest] = process.argv.slice(2);

if (mode === 'root') process.stdout.write(`${gate.root()?.path}\n`);
else if (mode === 'hold') hold();
else if (mode === 'wait') await waitFor();
else if (mode === 'race') await race();

function hold(): void {
  const turn = gate.tryTurn(url, { session, model: 'qwen-27b' });
  process.stdout.write(`${turn.kind}\n`);
  process.stdin.resume();
  process.stdin.once('end', () => {
    turn[Symbol.dispose]();
    process.exit(0);
  });
}

async function waitFor(): Promise<void> {
  const [turnClass, waitMs, log = ''] = rest;
  using turn = await acquireTurn(gate, url, {
    session,
    class: turnClass === 'batch' ? 'batch' : 'interactive',
    waitMs: Number(waitMs),
  });
  if (log === '-') {
    process.stdout.write(`${turn.kind}\n`);
    await once(process.stdin.resume(), 'end');
  } else {
    appendFileSync(log, `${turn.kind} ${session}\n`);
    await sleep(5);
  }
}

async function race(): Promise<void> {
  const [turns, log = ''] = rest;
  const fd = openSync(log, 'a');
  for (let done = 0; done < Number(turns); ) {
    // Most agents are deflected when it is busy and come again; some wait in the queue.
    using turn =
      done % 12 === 11
        ? await acquireTurn(gate, url, {
            session,
            waitMs: 60_000,
            class: done % 24 === 11 ? 'batch' : 'interactive',
          })
        : gate.tryTurn(url, { session, sidecar: done % 3 === 0 });
    if (turn.kind === 'held') {
      writeSync(fd, `+ ${session}\n`);
      if (done % 5 === 0) await sleep(0);
      writeSync(fd, `- ${session}\n`);
      done += 1;
    } else if (turn.kind !== 'busy') {
      throw new Error(`a turn was ${turn.kind}`);
    }
    turn[Symbol.dispose]();
    if (turn.kind === 'busy') await sleep(Math.random() * 3);
  }
}
