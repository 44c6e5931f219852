import { describe, expect, it } from 'vitest';
import { journalMessage, kernelTrouble, kmsgMessage } from '../../../electron/core/kernel-log/trouble.ts';
import { TroubleWatch } from '../../../electron/core/kernel-log/trouble-watch.ts';

const CARD = '0000:03:00.0';

describe('what a line of the kernel’s log says', () => {
  const lines: readonly [line: string, kind: string, pciAddress: string | null][] = [
    // amdgpu, kernels 6.1 to 6.17.
    [
      '[drm:mes_v11_0_submit_pkt_and_poll_completion.constprop.0 [amdgpu]] *ERROR* MES failed to response msg=3',
      'hung',
      null,
    ],
    [`amdgpu ${CARD}: amdgpu: MES failed to respond to msg=REMOVE_QUEUE`, 'hung', CARD],
    [`amdgpu ${CARD}: amdgpu: MES(1) failed to respond to msg=MISC (WAIT_REG_MEM)`, 'hung', CARD],
    [`amdgpu ${CARD}: amdgpu: MES might be in unrecoverable state, issue a GPU reset`, 'hung', CARD],
    [
      '[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=6132, emitted seq=6134',
      'hung',
      null,
    ],
    [`amdgpu ${CARD}: amdgpu: ring comp_1.2.0 timeout, signaled seq=2, emitted seq=4`, 'hung', CARD],
    [
      '[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=160, emitted seq=162',
      'hung',
      null,
    ],
    [`amdgpu ${CARD}: amdgpu: Ring gfx_0.0.0 reset failed`, 'hung', CARD],
    [`amdgpu ${CARD}: amdgpu: GPU reset begin!`, 'reset', CARD],
    ['[drm:amdgpu_device_gpu_recover [amdgpu]] *ERROR* VRAM is lost!', 'reset', null],
    [`amdgpu ${CARD}: amdgpu: failed to remove hardware queue from MES, doorbell=0x1006`, 'eviction', CARD],
    ['amdgpu: Failed to evict process queues', 'eviction', null],
    ['amdgpu: Failed to quiesce KFD', 'eviction', null],
    ['[TTM] Buffer eviction failed', 'eviction', null],
    ['[TTM] Failed to find memory space for buffer 0x00000000b6d4c2a1 eviction', 'eviction', null],
    ['[drm:amdgpu_cs_ioctl [amdgpu]] *ERROR* Not enough memory for command submission!', 'eviction', null],
    [`amdgpu ${CARD}: amdgpu: [drm] dpcd write of DP_LANE_COUNT_SET failed`, 'display', CARD],
    [`amdgpu ${CARD}: amdgpu: [gfxhub] page fault (src_id:0 ring:153 vmid:8 pasid:32770)`, 'program', CARD],
    [`amdgpu ${CARD}: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:88 vmid:8)`, 'program', CARD],
    ['amdgpu: SVM mapping failed, exceeds resident system memory limit', 'eviction', null],
    // NVIDIA.
    [
      "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
      'hardware',
      '0000:01:00.0',
    ],
    [
      'NVRM: Xid (PCI:0000:01:00): 31, pid=4211, name=llama-server, Ch 00000008, intr 00000000. MMU Fault',
      'program',
      '0000:01:00.0',
    ],
    [
      'NVRM: Xid (PCI:0000:2b:00): 119, pid=2211, name=gsd-power, Timeout after 6s of waiting for RPC response from GPU0 GSP!',
      'hung',
      '0000:2b:00.0',
    ],
    [
      'NVRM: Xid (PCI:00000000:41:00): 48, pid=1, name=x, An uncorrectable double bit error',
      'hardware',
      '0000:41:00.0',
    ],
    [
      '[drm:nv_drm_gem_alloc_nvkms_memory_ioctl [nvidia_drm]] *ERROR* [nvidia-drm] [GPU ID 0x00002B00] Failed to allocate NVKMS memory for GEM object',
      'eviction',
      '0000:2b:00.0',
    ],
    [
      '[drm] [nvidia-drm] [GPU ID 0x00000100] Failed to allocate NVKMS video memory for GEM object, trying to fall back to sysmem',
      'eviction',
      '0000:01:00.0',
    ],
    [
      'NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1353',
      'eviction',
      null,
    ],
    // Intel.
    [
      'i915 0000:00:02.0: [drm] GPU HANG: ecode 12:1:85dffffb, in llama-server [4211]',
      'hung',
      '0000:00:02.0',
    ],
    [
      'xe 0000:03:00.0: [drm] Tile0: GT0: Timedout job: seqno=4294967169, lrc_seqno=4294967169',
      'hung',
      '0000:03:00.0',
    ],
    ['xe 0000:03:00.0: [drm] VM worker error: -12', 'eviction', '0000:03:00.0'],
    ['xe 0000:03:00.0: [drm] VM worker error: -16', 'program', '0000:03:00.0'],
    // The system.
    [
      'Out of memory: Killed process 4211 (llama-server) total-vm:48123412kB, anon-rss:31212312kB',
      'host',
      null,
    ],
    ['Memory cgroup out of memory: Killed process 99 (ollama) total-vm:1kB', 'host', null],
  ];
  for (const [line, kind, pciAddress] of lines)
    it(line.slice(0, 90), () => {
      expect(kernelTrouble(line)).toMatchObject({ kind, pciAddress });
    });

  const quiet: readonly string[] = [
    `amdgpu ${CARD}: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0`,
    `amdgpu ${CARD}: amdgpu: GPU reset(2) succeeded!`,
    `amdgpu ${CARD}: [drm] device wedged, but recovered through reset`,
    `amdgpu ${CARD}: amdgpu: SMU is resumed successfully!`,
    '[drm] amdgpu: 32752M of VRAM memory ready',
    'NVRM: Xid (PCI:0000:01:00): 45, pid=4211, name=llama-server, Ch 00000008',
    'NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.16',
    'usb 1-1: new high-speed USB device number 5',
    'oom_reaper: reaped process 4211 (llama-server), now anon-rss:0kB',
    '',
  ];
  for (const line of quiet)
    it(`nothing: ${line.slice(0, 60)}`, () => {
      expect(kernelTrouble(line)).toBeNull();
    });

  it('who made it is named, where the line says', () => {
    expect(kernelTrouble('Out of memory: Killed process 4211 (llama-server) total-vm:1kB')).toMatchObject({
      pid: 4211,
      what: 'the system ran out of memory and ended llama-server',
    });
    const fault = `amdgpu ${CARD}: amdgpu: [gfxhub] page fault (src_id:0 ring:153 vmid:8 pasid:1, for process`;
    expect(kernelTrouble(`${fault} ollama pid 1234 thread ollama pid 1234)`)?.what).toMatch(/^ollama asked/);
    expect(kernelTrouble(`${fault}  pid 0 thread  pid 0)`)?.what).toMatch(/^a program asked/);
    expect(kernelTrouble('NVRM: Xid (PCI:0000:01:00): 13, pid=7, name=python3, Graphics')).toMatchObject({
      xid: 13,
      pid: 7,
      what: 'python3 made a fault on the card (Xid 13)',
    });
  });
});

describe('where lines come from', () => {
  it('the journal gives JSON, whose message may be bytes', () => {
    expect(journalMessage('{"MESSAGE":"hello","PRIORITY":"3"}')).toBe('hello');
    expect(journalMessage('{"MESSAGE":[104,105]}')).toBe('hi');
    for (const line of ['{"MESSAGE":null}', '{}', 'not json', '3', ''])
      expect(journalMessage(line)).toBeNull();
  });

  it('/dev/kmsg gives records, and lines that continue one', () => {
    expect(kmsgMessage('3,1204,5000000,-;amdgpu: hello; there')).toBe('amdgpu: hello; there');
    expect(kmsgMessage(' SUBSYSTEM=pci')).toBeNull();
  });
});

describe('the story that is told', () => {
  it('is one event for all lines of it, with the card’s name and what helps', () => {
    const watch = new TroubleWatch();
    const name = (address: string): string | null => (address === CARD ? 'Radeon RX 7900 XTX' : null);
    const line = `amdgpu ${CARD}: amdgpu: MES failed to respond to msg=REMOVE_QUEUE`;
    const told = watch.take(line, 0, name);
    expect(told).toMatchObject({ drains: true, event: { kind: 'driver_trouble', deviceId: `pci:${CARD}` } });
    expect(told?.event.reason).toMatch(/on Radeon RX 7900 XTX: the card's scheduler .*Draining/);
    expect(watch.take(line, 100_000, name)).toBeNull();
    // It went on all the time: still the same story.
    expect(watch.take(line, 200_000, name)).toBeNull();
    expect(watch.take(line, 400_000, name)).not.toBeNull();
    const reset = watch.take(`amdgpu ${CARD}: amdgpu: GPU reset begin!`, 400_001, name);
    expect(reset).toMatchObject({ drains: false });
    expect(watch.take('usb 1-1: new device', 0, name)).toBeNull();
  });
});
