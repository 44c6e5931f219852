import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GpuReport } from '../../build/gpu-check/check.ts';
import { makeGpuCheck } from '../../build/gpu-check/make.ts';

const root = resolve(import.meta.dirname, '../..');
const MIB = 1024 ** 2;
let folder = '';
let made = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpu-check-'));
  made = join(folder, 'made');
  await makeGpuCheck(root, made);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function bytesIn(path: string): number {
  return readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
    const inner = join(path, entry.name);
    return sum + (entry.isDirectory() ? bytesIn(inner) : statSync(inner).size);
  }, 0);
}

/** The report of a run, as on a machine where nothing of ours is on the PATH. */
function run(out: string, more: readonly string[], env: Readonly<Record<string, string>>): GpuReport {
  const ran = spawnSync(join(made, 'run'), ['--out', out, ...more], {
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', ...env },
  });
  expect(ran.stderr).toBe('');
  expect(ran.status).toBe(0);
  expect(ran.stdout).toContain(readFileSync(join(out, 'gpu-check.txt'), 'utf8'));
  return JSON.parse(readFileSync(join(out, 'gpu-check.json'), 'utf8'));
}

function hasCompiler(): boolean {
  return spawnSync('gcc', ['--version']).status === 0;
}

/** What nvidia-smi prints of the stand-in's card and the processes on it. */
const SMI = `#!/bin/sh
used=500
rows=
for file in "$STAND_IN_CARD"/*; do
  [ -f "$file" ] || continue
  mib=$(( $(cat "$file") / 1048576 ))
  used=$(( used + mib ))
  rows="$rows<process_info><gpu_instance_id>N/A</gpu_instance_id><pid>\${file##*/}</pid><type>C</type><process_name>x</process_name><used_memory>$mib MiB</used_memory></process_info>"
done
cat <<END
<?xml version="1.0" ?>
<nvidia_smi_log><driver_version>570.00</driver_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:0A:00.0"><product_name>Stand-in 4000</product_name><display_active>Enabled</display_active>
<fb_memory_usage><total>8192 MiB</total><reserved>100 MiB</reserved><used>$used MiB</used><free>$(( 8092 - used )) MiB</free></fb_memory_usage>
<utilization><gpu_util>3 %</gpu_util></utilization><processes>$rows</processes></gpu></nvidia_smi_log>
END
`;

describe('the folder that checks NVIDIA cards', () => {
  it('is small enough to carry, and says where there is no card that there is none', () => {
    expect(bytesIn(made)).toBeLessThan(60_000_000);
    const empty = join(folder, 'no-card');
    mkdirSync(empty);
    const report = run(empty, ['--sys', empty], {});
    expect(report.cards).toEqual([]);
    expect(report.nvmlWhy).not.toBeNull();
    expect(report.smiWhy).not.toBeNull();
    expect(report.missing.totalBytes).toBeNull();
    expect(report.missing.error).not.toBeNull();
    expect(readFileSync(join(empty, 'gpu-check.txt'), 'utf8')).toContain('No NVIDIA card could be checked');
  });

  // With a C compiler at hand: libraries with the driver's calls and layouts, whose card is a folder.
  if (hasCompiler()) {
    it('sets one source against the other, and finds what a program took', () => {
      const libraries = join(folder, 'lib');
      const held = join(folder, 'card');
      const sys = join(folder, 'sys-root');
      const card = join(sys, 'sys/bus/pci/devices/0000:0a:00.0');
      for (const path of [
        libraries,
        held,
        join(sys, 'sys/bus/pci/drivers/nvidia/0000:0a:00.0'),
        join(card, 'power'),
      ])
        mkdirSync(path, { recursive: true });
      for (const [source, library] of [
        ['stand-in-cuda.c', 'libcuda.so.1'],
        ['stand-in-nvml-live.c', 'libnvidia-ml.so.1'],
      ] as const)
        execFileSync('gcc', [
          ...['-shared', '-fPIC', '-w', '-o', join(libraries, library)],
          join(root, 'test/fixtures/devices', source),
        ]);
      writeFileSync(join(libraries, 'nvidia-smi'), SMI);
      chmodSync(join(libraries, 'nvidia-smi'), 0o755);
      writeFileSync(join(card, 'vendor'), '0x10de\n');
      writeFileSync(join(card, 'device'), '0x2704\n');
      writeFileSync(join(card, 'power/runtime_status'), 'active\n');
      writeFileSync(join(card, 'power/control'), 'on\n');
      const report = run(join(folder, 'report'), ['--sys', sys], {
        LD_LIBRARY_PATH: libraries,
        PATH: `${libraries}:/usr/bin:/bin`,
        STAND_IN_CARD: held,
      });
      expect(report.nvmlWhy).toBeNull();
      const [one] = report.cards;
      expect(one?.fields.filter(({ agrees }) => !agrees)).toEqual([]);
      expect(one?.fields).toHaveLength(9);
      expect(one?.costs.every(({ rounds, medianMs }) => rounds > 0 && medianMs >= 0)).toBe(true);
      const steps = one?.attribution?.steps ?? [];
      expect(one?.attribution?.why).toBeNull();
      expect(steps.map((step) => step.allocatedBytes / MIB)).toEqual([0, 64, 320, 1344, 0]);
      expect(steps.map((step) => (step.nvmlBytes ?? 0) - 300_000_000)).toEqual(
        steps.map((step) => step.allocatedBytes),
      );
      expect(one?.attribution?.nvmlWorstBytes).toBe(0);
      expect(one?.attribution?.smiWorstBytes).toBeLessThan(2 * MIB);
      expect(steps.every((step) => step.ledgerRefuses === true)).toBe(true);
      expect(report.power[0]).toMatchObject({ powerBefore: 'active', powerAfter: 'active' });
      expect(report.missing).toMatchObject({ totalBytes: null });
      expect(report.sampler.find(({ source }) => source === 'nvml')?.totalBytes).toBe(8192 * MIB);
    });
  }
});
