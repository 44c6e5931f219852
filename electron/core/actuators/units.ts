import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import { programKind } from '../ledger/program-kind.ts';
import { type Unit, unitOfCgroup } from '../process/control-group.ts';

/** Services behind processes; the one place that talks to systemd. */
export interface Units {
  /** The service whose main process this server is, or is started by; errors say why there is none to be started anew. */
  of(pid: number): Promise<Result<Unit>>;
  restart(unit: Unit): Promise<Result<void>>;
}

/** systemd waits 90 s for a service to stop before it kills it (TimeoutStopSec). */
const RESTART_LIMIT_MS = 120_000;
const ASK_LIMIT_MS = 5_000;

/** Through `systemctl` on the PATH, without a shell. `ownPid`: what runs in our own service is not started anew. */
export function systemdUnits(ownPid: number = process.pid, procRoot = '/proc'): Units {
  const cgroup = (pid: number): Promise<string | null> =>
    readFile(`${procRoot}/${pid}/cgroup`, 'utf8').catch(() => null);
  return {
    async of(pid) {
      const text = await cgroup(pid);
      const unit = text === null ? null : unitOfCgroup(text);
      if (unit === null)
        return fail(
          'not_supported',
          `Process ${pid} is not kept by a systemd service: start it anew by hand.`,
        );
      const ours = unitOfCgroup((await cgroup(ownPid)) ?? '');
      if (ours?.name === unit.name && ours.scope === unit.scope)
        return fail('not_supported', `Process ${pid} runs inside VRAM Landlord's own service.`);
      const shown = await run(
        [...scoped(unit), 'show', '--property=MainPID', '--value', unit.name],
        ASK_LIMIT_MS,
      );
      if (!shown.ok) return shown;
      const mainPid = Number(shown.value.trim());
      if (!Number.isInteger(mainPid) || mainPid <= 1)
        return fail('not_supported', `${unit.name} has no main process now.`);
      // A desktop's own service has apps in it: only one that is there for this server is started anew.
      const isItself = mainPid === pid || (await parentOf(procRoot, pid)) === mainPid;
      const name = await readFile(`${procRoot}/${mainPid}/comm`, 'utf8').catch(() => '');
      const isDesktop = programKind({ ...NO_USE, pid: mainPid, name: name.trim() }) === 'desktop';
      if (!isItself || (mainPid !== pid && isDesktop))
        return fail(
          'not_supported',
          `${unit.name} is not there for process ${pid} alone: start it anew by hand.`,
        );
      return ok(unit);
    },
    async restart(unit) {
      const done = await run([...scoped(unit), 'restart', unit.name], RESTART_LIMIT_MS);
      if (done.ok) return ok(undefined);
      const command = unit.scope === 'user' ? 'systemctl --user restart' : 'sudo systemctl restart';
      return fail(done.error.code, `${done.error.message} Try \`${command} ${unit.name}\` yourself.`);
    },
  };
}

const NO_USE = {
  deviceId: '',
  startTimeTicks: null,
  bytes: null,
  gttBytes: null,
  source: 'kfd',
  type: null,
} as const;

function scoped(unit: Unit): readonly string[] {
  return unit.scope === 'user' ? ['--user'] : [];
}

async function parentOf(procRoot: string, pid: number): Promise<number | null> {
  const stat = await readFile(`${procRoot}/${pid}/stat`, 'utf8').catch(() => '');
  const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  return Number.isInteger(parent) ? parent : null;
}

function run(args: readonly string[], limitMs: number): Promise<Result<string>> {
  return new Promise((resolve) => {
    const said: string[] = [];
    const notRun = (error: unknown): void =>
      resolve(fail('not_supported', `systemctl can't be run (${messageOf(error)}).`));
    let child: ChildProcess;
    try {
      // Without a descriptor left there is a child with no streams, and an error follows; or `spawn` throws.
      child = spawn('systemctl', args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs });
    } catch (error) {
      notRun(error);
      return;
    }
    let out = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      if (out.length < 10_000) out += chunk.toString('utf8');
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      if (said.length < 20) said.push(chunk.toString('utf8'));
    });
    child.once('error', notRun);
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(ok(out));
      const why = said.join('').trim().split('\n').at(-1) ?? '';
      const how = signal === null ? `ended with exit code ${code}` : `did not end within ${limitMs / 1000} s`;
      resolve(
        fail(
          'backend_refused',
          `systemctl ${args.join(' ')} ${how}${why === '' ? '' : `: ${why.replace(/\.$/, '')}`}.`,
        ),
      );
    });
  });
}
