import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGate } from '../../electron/core/gate/gate.ts';
import { type BenchReport, type BenchSide, figures } from './report.ts';

/** Rounds in which every side has its turn. */
const ROUNDS = 20;
const FAST_PER_ROUND = 500;
const SLOW_PER_ROUND = 10;
const AIM_RATIO = 3;
const AIM_SIDECAR_US = 250;

interface Contender {
  readonly name: string;
  /** Microseconds of each of one round's operations. */
  readonly round: () => Promise<readonly number[]> | readonly number[];
}

/** Open, flock, close: what a lane is at least. Prints nanoseconds, one operation a line. */
const IN_C = `#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}
int main(int argc, char **argv) {
  int n = argc > 2 ? atoi(argv[2]) : 0;
  for (int i = 0; i < n; i++) {
    long begin = now();
    int fd = open(argv[1], O_RDWR | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) return 1;
    close(fd);
    printf("%ld\\n", now() - begin);
  }
  return 0;
}
`;

const IN_PYTHON = `import fcntl, os, sys, time
for _ in range(int(sys.argv[2])):
    begin = time.monotonic_ns()
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)
    print(time.monotonic_ns() - begin)
`;

export async function benchLane(short = false): Promise<BenchReport> {
  const folder = mkdtempSync(join(tmpdir(), 'landlord-bench-lane-'));
  try {
    const lock = join(folder, 'bare.lock');
    writeFileSync(lock, '');
    const notes = [
      'A lane keeps its file open between turns, and each turn proves that it is the file at its path; the others open it each time.',
    ];
    const contenders = [
      ...bareFlock(folder, lock, notes),
      ...ourLane(folder),
      ...programFlock(lock, notes),
      ...properLockfile(folder, notes),
    ];
    const sides: BenchSide[] = await alternate(contenders, short ? 2 : ROUNDS);
    const report = { part: 'lane', sides: figures(sides), notes };
    return { ...report, notes: [...notes, ...aims(report)] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function alternate(contenders: readonly Contender[], rounds: number): Promise<BenchSide[]> {
  const samples = contenders.map((): number[] => []);
  // The first round warms caches and compilers, and does not count.
  for (let round = 0; round <= rounds; round += 1) {
    for (const [index, contender] of contenders.entries()) {
      const measured = await contender.round();
      if (round > 0) samples[index]?.push(...measured);
    }
  }
  return contenders.map(({ name }, index) => ({ name, samplesUs: samples[index] ?? [] }));
}

/** In C where there is a compiler, and in Python where that is there; the first found is the baseline. */
function bareFlock(folder: string, lock: string, notes: string[]): readonly Contender[] {
  const source = join(folder, 'bare.c');
  const program = join(folder, 'bare');
  writeFileSync(source, IN_C);
  const found: Contender[] = [];
  if (spawnSync('cc', ['-O2', '-o', program, source]).status === 0) {
    found.push({
      name: 'open + flock(2) + close, C',
      round: () => lines(program, [lock, `${FAST_PER_ROUND}`]),
    });
  } else {
    notes.push('No C compiler here: Python is the baseline.');
  }
  if (spawnSync('python3', ['-c', 'import fcntl']).status === 0) {
    const args = ['-c', IN_PYTHON, lock, `${FAST_PER_ROUND}`];
    found.push({ name: 'open + fcntl.flock + close, Python', round: () => lines('python3', args) });
  } else {
    notes.push('No Python here.');
  }
  return found;
}

function lines(program: string, args: readonly string[]): readonly number[] {
  const { stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return stdout
    .trim()
    .split('\n')
    .map((line) => Number(line) / 1000);
}

function ourLane(folder: string): readonly Contender[] {
  const env = { VRAM_LANDLORD_GATE_DIR: join(folder, 'gates') };
  const gate = createGate({ env: () => env });
  const round = (sidecar: boolean): readonly number[] =>
    Array.from({ length: FAST_PER_ROUND }, () => {
      const begin = process.hrtime.bigint();
      const turn = gate.tryTurn('http://127.0.0.1:8080/v1', { session: 'bench', model: 'model', sidecar });
      turn[Symbol.dispose]();
      const us = Number(process.hrtime.bigint() - begin) / 1000;
      if (turn.kind !== 'held') throw new Error(`the lane was ${turn.kind}, not held`);
      return us;
    });
  return [
    { name: 'a turn’s lane, no sidecar', round: () => round(false) },
    { name: 'a turn’s lane, with sidecar', round: () => round(true) },
  ];
}

function programFlock(lock: string, notes: string[]): readonly Contender[] {
  if (spawnSync('flock', ['-n', lock, 'true']).status !== 0) {
    notes.push('No flock program here.');
    return [];
  }
  const one = (): number => {
    const begin = process.hrtime.bigint();
    spawnSync('flock', ['-n', lock, 'true'], { stdio: 'ignore' });
    return Number(process.hrtime.bigint() - begin) / 1000;
  };
  return [
    { name: 'flock -n FILE true, util-linux', round: () => Array.from({ length: SLOW_PER_ROUND }, one) },
  ];
}

interface ProperLockfile {
  lock(path: string): Promise<() => Promise<void>>;
}

function properLockfile(folder: string, notes: string[]): readonly Contender[] {
  const file = join(folder, 'proper');
  writeFileSync(file, '');
  let library: ProperLockfile;
  try {
    library = createRequire(import.meta.url)('proper-lockfile');
  } catch {
    notes.push('proper-lockfile is not installed.');
    return [];
  }
  return [
    {
      name: 'proper-lockfile',
      round: async () => {
        const samples: number[] = [];
        for (let index = 0; index < SLOW_PER_ROUND * 5; index += 1) {
          const begin = process.hrtime.bigint();
          const release = await library.lock(file);
          await release();
          samples.push(Number(process.hrtime.bigint() - begin) / 1000);
        }
        return samples;
      },
    },
  ];
}

function aims(report: BenchReport): readonly string[] {
  const plain = report.sides.find((side) => side.name === 'a turn’s lane, no sidecar');
  const written = report.sides.find((side) => side.name === 'a turn’s lane, with sidecar');
  if (plain?.ratio == null || written === undefined) return [];
  const word = (met: boolean): string => (met ? 'met' : 'NOT met');
  return [
    `aim: no sidecar within ${AIM_RATIO} × the baseline: ${word(plain.ratio <= AIM_RATIO)}`,
    `aim: with sidecar under ${AIM_SIDECAR_US} µs: ${word(written.medianUs < AIM_SIDECAR_US)}`,
  ];
}
