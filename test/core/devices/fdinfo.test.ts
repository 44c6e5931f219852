import { describe, expect, it } from 'vitest';
import { attributeClients, type ClientSighting } from '../../../electron/core/devices/drm-clients.ts';
import { parseFdinfo } from '../../../electron/core/devices/fdinfo.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

function fdinfo(
  driver: string,
  lines: Readonly<Record<string, string>>,
  id: number | null = 1,
  pdev = '0000:03:00.0',
): string {
  const rows = Object.entries(lines).map(([key, value]) => `${key}:\t${value}`);
  const client = id === null ? [] : [`drm-client-id: ${id}`];
  return ['pos:\t0', `drm-driver:\t${driver}`, `drm-pdev:\t${pdev}`, ...client, ...rows].join('\n');
}

describe('fdinfo', () => {
  it('takes one family of names: resident before the older one before total', () => {
    const text = fdinfo('amdgpu', {
      'drm-total-vram': '30 KiB',
      'drm-memory-vram': '20 KiB',
      'drm-resident-vram': '10 KiB',
    });
    expect(parseFdinfo(text)).toMatchObject({ vramBytes: 10 * KIB, family: 'resident' });
    const older = fdinfo('amdgpu', { 'drm-total-vram': '30 KiB', 'drm-memory-vram': '20 KiB' });
    expect(parseFdinfo(older)).toMatchObject({ vramBytes: 20 * KIB, family: 'memory' });
  });

  it('nouveau’s gart is system pages, never VRAM', () => {
    const text = fdinfo('nouveau', { 'drm-resident-vram': '5 MiB', 'drm-resident-gart': '7 MiB' });
    expect(parseFdinfo(text)).toMatchObject({ vramBytes: 5 * MIB, gttBytes: 7 * MIB });
    expect(parseFdinfo(fdinfo('nouveau', { 'drm-total-gart': '7 MiB' }))).toMatchObject({
      vramBytes: null,
      gttBytes: 7 * MIB,
    });
  });

  it('units are KiB, MiB, GiB or none for bytes', () => {
    const of = (value: string): number | null =>
      parseFdinfo(fdinfo('xe', { 'drm-resident-vram0': value }))?.vramBytes ?? null;
    expect([of('3'), of('3 KiB'), of('3 MiB'), of('3 GiB'), of('three')]).toEqual([
      3,
      3 * KIB,
      3 * MIB,
      3072 * MIB,
      null,
    ]);
  });

  it('numbered regions are memories of their own and add up', () => {
    const text = fdinfo('xe', {
      'drm-resident-vram0': '1 MiB',
      'drm-resident-vram1': '2 MiB',
      'drm-shared-vram0': '1 MiB',
    });
    expect(parseFdinfo(text)).toMatchObject({ vramBytes: 3 * MIB, sharedVramBytes: MIB });
  });

  it('i915 calls its memories local0 and system', () => {
    const text = fdinfo('i915', {
      'drm-resident-local0': '5 MiB',
      'drm-resident-system': '7 MiB',
      'drm-resident-stolen-system': '9 MiB',
    });
    expect(parseFdinfo(text)).toMatchObject({ vramBytes: 5 * MIB, gttBytes: 7 * MIB });
  });

  it('msm and panfrost have one region called memory, which is the system’s', () => {
    const text =
      'drm-driver:\tmsm\ndrm-client-id:\t9\ndrm-total-memory:\t8 MiB\ndrm-resident-memory:\t6 MiB\n';
    expect(parseFdinfo(text)).toMatchObject({ pciAddress: null, vramBytes: null, gttBytes: 6 * MIB });
  });

  it('cycle counters are work, not memory', () => {
    const text = fdinfo('xe', {
      'drm-cycles-rcs': '5',
      'drm-total-cycles-rcs': '999',
      'drm-engine-capacity-vcs': '2',
    });
    expect(parseFdinfo(text)).toMatchObject({
      vramBytes: null,
      gttBytes: null,
      family: 'none',
      usedEngine: true,
    });
    expect(parseFdinfo(fdinfo('xe', { 'drm-engine-capacity-vcs': '2' }))?.usedEngine).toBe(false);
  });

  it('a region that is not printed is unknown, one that is 0 is 0', () => {
    expect(parseFdinfo(fdinfo('amdgpu', { 'drm-memory-gtt': '4 KiB' }))?.vramBytes).toBeNull();
    expect(parseFdinfo(fdinfo('amdgpu', { 'drm-memory-vram': '0' }))?.vramBytes).toBe(0);
  });

  it.each(['amdxdna_accel_driver', 'amdxdna', 'intel_vpu', 'habanalabs', 'qaic', 'rocket'])(
    '%s is no GPU',
    (driver) => {
      expect(parseFdinfo(fdinfo(driver, { 'drm-total-memory': '8 MiB' }))?.device).toBe('accel');
    },
  );

  it.each(['amdgpu', 'i915', 'xe', 'nouveau', 'msm', 'panfrost', 'v3d', 'nvidia-drm'])(
    '%s is one',
    (driver) => {
      expect(parseFdinfo(fdinfo(driver, {}))?.device).toBe('gpu');
    },
  );

  it('amdgpu before Linux 5.19 had words of its own', () => {
    const text = [
      'pos:\t0',
      'flags:\t02100002',
      'pdev:\t0000:0a:00.0',
      'pasid:\t32770',
      'vram mem:\t5242880 kB',
      'gtt mem:\t2048 kB',
      'cpu mem:\t0 kB',
      'gfx0:\t0.37%',
    ].join('\n');
    expect(parseFdinfo(text)).toMatchObject({
      driver: 'amdgpu',
      pciAddress: '0000:0a:00.0',
      clientId: 32_770,
      device: 'gpu',
      vramBytes: 5120 * MIB,
      gttBytes: 2 * MIB,
      usedEngine: true,
    });
  });

  it('other descriptors and texts cut before their driver give nothing', () => {
    expect(parseFdinfo('pos:\t0\nflags:\t02\nlock:\t1: FLOCK')).toBeNull();
    expect(parseFdinfo('pos:\t0\ndrm-dri')).toBeNull();
    expect(parseFdinfo('drm-driver:')).toBeNull();
  });
});

describe('attribution of DRM clients', () => {
  function seen(
    pid: number,
    startTimeTicks: number | null,
    clientId: number | null,
    vram: number,
    pdev?: string,
  ): ClientSighting {
    const client = parseFdinfo(fdinfo('amdgpu', { 'drm-memory-vram': String(vram) }, clientId, pdev));
    if (client === null) throw new Error('not a client');
    return { pid, startTimeTicks, name: `p${pid}`, client };
  }
  const bytes = (sightings: readonly ClientSighting[]): readonly (readonly [number, number | null])[] =>
    attributeClients(sightings).map((row) => [row.pid, row.vramBytes] as const);

  it('several descriptors of one client count once', () => {
    expect(bytes([seen(10, 1, 5, 100), seen(10, 1, 5, 100), seen(10, 1, 6, 7)])).toEqual([[10, 107]]);
  });

  it('a fork that inherited the descriptor adds nothing: the older process owns it', () => {
    expect(bytes([seen(20, 900, 5, 100), seen(10, 100, 5, 100)])).toEqual([[10, 100]]);
    // After the pids wrapped around, the younger one has the lower pid.
    expect(bytes([seen(3, 900, 5, 100), seen(4000, 100, 5, 100)])).toEqual([[4000, 100]]);
  });

  it('one process on two cards has a row for each, and ids are per card', () => {
    expect(bytes([seen(10, 1, 5, 100, '0000:03:00.0'), seen(10, 1, 5, 30, '0000:04:00.0')])).toEqual([
      [10, 100],
      [10, 30],
    ]);
  });

  it('accelerators are left out', () => {
    const npu = parseFdinfo(fdinfo('amdxdna', { 'drm-total-memory': '8 MiB' }));
    if (npu === null) throw new Error('not a client');
    expect(attributeClients([{ pid: 1, startTimeTicks: 1, name: 'npu', client: npu }])).toEqual([]);
  });
});
