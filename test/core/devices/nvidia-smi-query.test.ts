import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SmiAnswer, smiQuestions } from '../../../electron/core/devices/nvidia-smi-query.ts';
import { nvidiaSmiReader } from '../../../electron/core/devices/nvidia-smi-reader.ts';
import { runTool } from '../../../electron/core/devices/tool-run.ts';
import { readFixture } from '../../support/evidence.ts';
import { memoryTree } from '../../support/memory-tree.ts';

const MIB = 1024 ** 2;

describe('asking nvidia-smi, a program on the PATH', () => {
  let folder = '';
  let path: string | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'smi-'));
    path = process.env.PATH;
    process.env.PATH = `${folder}:${path ?? ''}`;
  });
  afterEach(() => {
    process.env.PATH = path;
    rmSync(folder, { recursive: true, force: true });
  });

  /** A stand-in: what it does for `-q -x`, `--query-gpu` and `--query-compute-apps`, as shell lines. */
  function install(parts: { readonly xml?: string; readonly gpu?: string; readonly apps?: string }): void {
    const script = `#!/bin/sh
echo "$@" >> ${folder}/asked
case "$1" in
-q) ${parts.xml ?? 'exit 2'} ;;
--query-gpu=*) ${parts.gpu ?? 'exit 2'} ;;
--query-compute-apps=*) ${parts.apps ?? 'exit 2'} ;;
esac
`;
    writeFileSync(join(folder, 'nvidia-smi'), script);
    chmodSync(join(folder, 'nvidia-smi'), 0o755);
  }
  const asked = (): readonly string[] =>
    readFileSync(join(folder, 'asked'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(/[ =]/)[0] ?? '');
  const questions = (limitMs = 5000): (() => Promise<SmiAnswer>) =>
    smiQuestions((args) => runTool('nvidia-smi', args, limitMs));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return `cat ${folder}/${name}`;
  };

  const ROW = '0, GPU-1-1, 00000000:0A:00.0, Tesla M60, 8129, 0, 400, 7729, 12, Enabled, [N/A]';
  const OLD_ROW = '0, GPU-1-1, 00000000:0A:00.0, Tesla M60, 8129, 400, 7729, 12, Enabled';
  const gpuOf = (answer: SmiAnswer) => (answer.ok ? answer.report.gpus : []);

  it('takes the XML where it is whole, and asks no more', async () => {
    install({ xml: file('x', readFixture('devices/smi-full.xml')) });
    expect(gpuOf(await questions()())).toMatchObject([{ usedBytes: 3020 * MIB }, { totalBytes: 4096 * MIB }]);
    expect(asked()).toEqual(['-q']);
  });

  it.each([
    ['is not supported', 'echo "Invalid combination of input arguments."; exit 2'],
    ['is garbage', 'head -c 3000 /dev/zero'],
    ['is HTML', 'echo "<html><body>no</body></html>"'],
    ['is empty', 'exit 0'],
  ])('asks for CSV where the XML %s', async (_, xml) => {
    install({
      xml,
      gpu: `echo "${ROW}"`,
      apps: 'echo "00000000:0A:00.0, GPU-1-1, 77, /usr/bin/a, b, 300"; echo "[N/A], GPU-1-1, 78, c, [N/A]"',
    });
    const answer = await questions()();
    expect(gpuOf(answer)).toMatchObject([
      {
        index: 0,
        pciAddress: '0000:0a:00.0',
        name: 'Tesla M60',
        totalBytes: 8129 * MIB,
        usedBytes: 400 * MIB,
        freeBytes: 7729 * MIB,
        busyPercent: 12,
        displayActive: true,
        memoryAnswer: 'given',
      },
    ]);
    expect(answer.ok && answer.report.processes).toMatchObject([
      { pid: 77, name: '/usr/bin/a, b', bytes: 300 * MIB, pciAddress: '0000:0a:00.0' },
      { pid: 78, bytes: null, pciAddress: '0000:0a:00.0' },
    ]);
  });

  it('leaves out fields that an old driver does not know, and does not ask for them again', async () => {
    install({
      gpu: `case "$1" in
*reserved*) echo 'Field "memory.reserved" is not a valid field to query.'; exit 2 ;;
*mig*) echo 'Field "mig.mode.current" is not a valid field to query.'; exit 2 ;;
*) echo "${OLD_ROW}" ;;
esac`,
      apps: 'exit 0',
    });
    const ask = questions();
    for (const turn of [0, 1]) {
      const [gpu] = gpuOf(await ask());
      expect([turn, gpu?.usedBytes, gpu?.reservedBytes, gpu?.freeBytes]).toEqual([
        turn,
        400 * MIB,
        null,
        7729 * MIB,
      ]);
    }
    expect(asked()).toEqual([
      '-q',
      ...['--query-gpu', '--query-gpu', '--query-gpu', '--query-compute-apps'],
      ...['--query-gpu', '--query-compute-apps'],
    ]);
  });

  it('fills in the memory that the XML lacks, and keeps the desktop programs only it lists', async () => {
    const xml = `<nvidia_smi_log><gpu id="00000000:0A:00.0"><product_name>GRID</product_name>
<processes><process_info><pid>5</pid><type>G</type><process_name>Xorg</process_name><used_memory>9 MiB</used_memory></process_info></processes></gpu></nvidia_smi_log>`;
    install({ xml: file('x', xml), gpu: `echo "${ROW}"`, apps: 'exit 0' });
    const answer = await questions()();
    expect(gpuOf(answer)).toMatchObject([{ name: 'GRID', totalBytes: 8129 * MIB, usedBytes: 400 * MIB }]);
    expect(answer.ok && answer.report.processes).toMatchObject([{ pid: 5, type: 'G', bytes: 9 * MIB }]);
  });

  it('without either, a card stays a card with unknown memory and advice', async () => {
    install({ xml: file('x', '<nvidia_smi_log><gpu id="00000000:0A:00.0"/></nvidia_smi_log>') });
    const names = { name: () => null, startTimeTicks: () => null };
    const reader = nvidiaSmiReader(memoryTree({}), [], (args) => runTool('nvidia-smi', args), names);
    const request = { nowMs: 0, processes: false, openCards: null };
    let reading = await reader.read(request);
    for (let turn = 0; turn < 300 && reading.devices.length === 0; turn += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      reading = await reader.read(request);
    }
    expect(reading.devices).toMatchObject([{ memory: 'discrete', totalBytes: null, freeBytes: null }]);
    expect(reading.devices[0]?.error).toMatch(/update the driver\.$/);
  });

  it.each([
    [
      9,
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
      'nvidia-driver-not-running',
    ],
    [255, 'Failed to initialize NVML: Driver/library version mismatch', 'nvidia-driver-mismatch'],
    [4, 'Failed to initialize NVML: Insufficient Permissions', 'nvidia-no-permission'],
    [15, '', 'nvidia-gpu-lost'],
  ])(
    'exit %s is the driver’s own failure: it is told, and not asked for again as CSV',
    async (code, text, trouble) => {
      install({ xml: `echo "${text}"; exit ${code}`, gpu: `echo "${ROW}"` });
      expect(await questions()()).toMatchObject({ ok: false, trouble: { code: trouble } });
      expect(asked()).toEqual(['-q']);
    },
  );

  it('garbage in both is unknown, and says what came', async () => {
    install({ xml: 'echo strange words', gpu: 'echo strange words' });
    const answer = await questions()();
    expect(answer).toMatchObject({ ok: false, trouble: { code: 'nvidia-smi-unreadable' } });
    expect(answer.ok ? '' : answer.trouble.message).toContain('strange words');
  });

  it('a run that does not end is ended, and is not followed by another', async () => {
    install({ xml: 'echo "<nvidia_smi_log>"; exec sleep 30', gpu: `echo "${ROW}"` });
    expect(await questions(300)()).toMatchObject({ ok: false, trouble: { code: 'nvidia-smi-no-answer' } });
    expect(asked()).toEqual(['-q']);
  });

  it('a CSV query that does not end is ended too', async () => {
    install({ xml: 'exit 2', gpu: 'exec sleep 30' });
    expect(await questions(300)()).toMatchObject({ ok: false });
  });

  it('a program that is not there says so', async () => {
    const answer = await smiQuestions((args) => runTool('no-such-nvidia-smi', args))();
    expect(answer.ok ? '' : answer.trouble.message).toContain('not installed');
  });
});
