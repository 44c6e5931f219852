import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Breaks each rule of the guards once, in a copy, and runs the search of all small worlds over it
 * (test/core/guards/small-worlds.test.ts): a search that finds nothing then would prove nothing.
 * `node build/break-guards.ts`; it fails where a broken rule is not found.
 */
interface Break {
  readonly rule: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const BREAKS: readonly Break[] = [
  {
    rule: '6, a stale reading is acted upon',
    file: 'view.ts',
    from: 'if (!device.fresh || device.freeBytes === null',
    to: 'if (device.freeBytes === null',
  },
  {
    rule: '6, a reading from before the resume is acted upon',
    file: 'view.ts',
    from: 'return world.resumedAtMs === null || device.sampledAtMs > world.resumedAtMs;',
    to: 'return true;',
  },
  {
    rule: '7, a busy model counts as quiet',
    file: 'view.ts',
    from: 'return model.busy === false;',
    to: 'return true;',
  },
  {
    rule: '7, one whose state is unknown counts as idle',
    file: 'view.ts',
    from: 'return model.busy === false;',
    to: 'return model.busy !== true;',
  },
  {
    rule: '7, the loser is killed without its grace',
    file: 'race.ts',
    from: 'if (waitedMs < policy.raceGraceMs || !isMissed',
    to: 'if (!isMissed',
  },
  {
    rule: '7, a newcomer that lost is killed whether there is room or not',
    file: 'race.ts',
    from: ' || !isTooMuch(device, model)) return [];',
    to: ') return [];',
  },
  {
    rule: '7, a loading model may be chosen',
    file: 'view.ts',
    from: "return model.status === 'loaded' && isStaying(view, model) && !model.pinned",
    to: 'return isStaying(view, model) && !model.pinned',
  },
  {
    rule: '8, big models are not counted',
    file: 'one-big.ts',
    from: "if (maxBig === 'fit') return [];",
    to: 'return [];',
  },
  {
    rule: '8, the most recently used leave',
    file: 'one-big.ts',
    from: '.sort(byMostRecentUse);',
    to: '.sort(byLeastRecentUse);',
  },
  {
    rule: '9, the floor is not kept',
    file: 'floor.ts',
    from: 'if (freeBytes === null || floorBytes === null) return [];',
    to: 'return [];',
  },
  {
    rule: '9, pinned models leave',
    file: 'view.ts',
    from: '&& !model.pinned && view.mayTouch(model)',
    to: '&& view.mayTouch(model)',
  },
  {
    rule: '9, residents leave for the floor',
    file: 'floor.ts',
    from: 'leaversOn(view, device, { smalls: false, quiet: false }), short)',
    to: 'leaversOn(view, device, { smalls: true, quiet: false }), short)',
  },
  {
    rule: '9, residents leave first',
    file: 'candidates.ts',
    from: 'tier(one) - tier(other)',
    to: 'tier(other) - tier(one)',
  },
  {
    rule: '10, a process that is not proven is signalled',
    file: 'race.ts',
    from: 'if (model.pinned || !view.mayTouch(model) || model.signalable !== true) return [];\n    if (isKept',
    to: 'if (model.pinned || !view.mayTouch(model)) return [];\n    if (isKept',
  },
  {
    rule: '13, a breach counts at once',
    file: 'hysteresis.ts',
    from: 'return since !== undefined && world.nowMs - since >= world.policy.breachMs;',
    to: 'return true;',
  },
  {
    rule: '13, a breach before lost readings counts on',
    file: 'hysteresis.ts',
    from: 'recentFree[device.id] = points;\n      continue;',
    to: 'recentFree[device.id] = points;\n      if (since !== undefined) breachSinceMs[device.id] = since;\n      continue;',
  },
  {
    rule: '13, no minimum residency',
    file: 'memory.ts',
    from: 'world.nowMs - model.statusSinceMs < world.policy.minResidencyMs',
    to: 'false',
  },
  {
    rule: '13, an eviction that freed nothing is repeated',
    file: 'memory.ts',
    from: 'return freeBytes > nothing.freeBytes - NOTHING_DROP_BYTES;',
    to: 'return false;',
  },
  {
    rule: '13, the same is decided each tick',
    file: 'memory.ts',
    from: 'if (last === undefined) return false;',
    to: 'if (last !== undefined) return false;\n  if (last === undefined) return false;',
  },
  {
    rule: '14, a kill though nobody needs the bytes',
    file: 'race.ts',
    from: 'if (!isOverfull(device) || newcomersOn',
    to: 'if (newcomersOn',
  },
];

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const GUARDS = 'electron/core/guards';
/** Some ways to a broken rule are long. */
const WORLDS = '8000';

const copy = mkdtempSync(join(tmpdir(), 'landlord-broken-'));
try {
  for (const part of ['electron', 'shared', 'renderer', 'test', 'build', 'package.json', 'tsconfig.json'])
    cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const missed: string[] = [];
  for (const one of BREAKS) {
    const path = join(copy, GUARDS, one.file);
    const whole = readFileSync(path, 'utf8');
    if (whole.split(one.from).length !== 2) throw new Error(`${one.file} has no one place for: ${one.rule}`);
    writeFileSync(
      path,
      whole.replace(one.from, () => one.to),
    );
    const found = searchFails(copy);
    writeFileSync(path, whole);
    console.log(
      `${found === null ? 'NOT FOUND' : 'found    '}  rule ${one.rule}${found === null ? '' : `: ${found}`}`,
    );
    if (found === null) missed.push(one.rule);
  }
  console.log(`${BREAKS.length - missed.length} of ${BREAKS.length} broken rules found`);
  process.exitCode = missed.length === 0 ? 0 : 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}

/** What the search says of it; null: nothing. */
function searchFails(folder: string): string | null {
  const run = spawnSync(
    join(folder, 'node_modules/.bin/vitest'),
    [
      ...['run', '--config', 'build/vitest.config.ts', '--project', 'unit', '--retry', '0', '--bail', '1'],
      ...['--reporter', 'dot', 'test/core/guards/small-worlds.test.ts'],
    ],
    {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, LANDLORD_SEARCH_STATES: WORLDS, NO_COLOR: '1', FORCE_COLOR: '0' },
    },
  );
  if (run.status === 0) return null;
  const text = `${run.stdout}${run.stderr}`;
  const said = /AssertionError: (.+)/.exec(text)?.[1];
  if (said === undefined) throw new Error(`the search did not run:\n${text.slice(-2_000)}`);
  return said;
}
