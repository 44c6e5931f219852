import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processScanner } from '../../electron/core/devices/process-scan.ts';
import type { CardFacts } from '../../electron/core/devices/reader.ts';
import type { BenchSide } from './report.ts';
import { treeAt } from './tree-at.ts';

/** Of all processes, these have a card open, as on a desktop with a browser and some models. */
const CLIENTS = 40;
const FILES_EACH = 3;
const SCAN_MS = 2_000;
const ADDRESS = '0000:03:00.0';

/** A walk over a /proc of many processes for those that use a card: the first one, and the ones that follow. */
export function benchProc(folder: string, processes: number, scans: number): readonly BenchSide[] {
  const root = join(folder, 'many');
  for (let pid = 1; pid <= processes; pid += 1) layOut(root, pid);
  const scanner = processScanner(treeAt(root), 4096, () => new Set());
  const samplesUs: number[] = [];
  const clients = new Set<number>();
  for (let scan = 0; scan <= scans; scan += 1) {
    const beganAtMs = performance.now();
    // The clock of a runtime that scans every two seconds: what is looked at again comes round in it.
    const { rows } = scanner.scan(scan * SCAN_MS, [CARD]);
    samplesUs.push((performance.now() - beganAtMs) * 1000);
    for (const row of rows) clients.add(row.pid);
  }
  if (clients.size !== Math.min(CLIENTS, processes))
    throw new Error(`${clients.size} of ${CLIENTS} clients were found.`);
  const many = `${processes.toLocaleString('en')} processes`;
  return [
    { name: `the first walk over ${many}`, samplesUs: samplesUs.slice(0, 1) },
    { name: `each one after it, ${many}`, samplesUs: samplesUs.slice(1) },
  ];
}

const CARD: CardFacts = {
  id: `pci:${ADDRESS}`,
  kind: 'amdgpu',
  name: 'Card',
  pciAddress: ADDRESS,
  path: '/sys/class/drm/card1',
  memory: 'discrete',
  drivesDisplay: true,
  maySuspend: false,
  notes: [],
};

/** proc(5), and the DRM keys of fdinfo (Documentation/gpu/drm-usage-stats.rst). */
function layOut(root: string, pid: number): void {
  const folder = join(root, 'proc', String(pid));
  mkdirSync(join(folder, 'fd'), { recursive: true });
  const zeros = Array.from({ length: 30 }, () => '0').join(' ');
  writeFileSync(
    join(folder, 'stat'),
    `${pid} (program) S 1 ${pid} ${pid} 0 -1 0 0 0 0 0 5 3 0 0 20 0 1 0 ${1000 + pid} 0 0 ${zeros}\n`,
  );
  for (let fd = 0; fd < FILES_EACH; fd += 1)
    symlinkSync(`socket:[${pid}${fd}]`, join(folder, 'fd', String(fd)));
  if (pid > CLIENTS) return;
  symlinkSync('/dev/dri/renderD128', join(folder, 'fd', String(FILES_EACH)));
  mkdirSync(join(folder, 'fdinfo'));
  writeFileSync(
    join(folder, 'fdinfo', String(FILES_EACH)),
    `pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t${pid}\ndrm-pdev:\t${ADDRESS}\ndrm-total-vram:\t65536 KiB\ndrm-memory-vram:\t65536 KiB\ndrm-memory-gtt:\t1024 KiB\ndrm-engine-gfx:\t100 ns\n`,
  );
}
