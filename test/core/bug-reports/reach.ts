/**
 * The field reports that were collected, by number and name: where the right behaviour is shown by a test
 * named after it, or by tests that were there before; or, for what is out of reach, why.
 */
export type Reach =
  | { readonly file: string; readonly test: string }
  /** A sentence. */
  | { readonly beyond: string };

const HERE = 'test/core/bug-reports';

export const REPORTS: Readonly<Record<string, Reach>> = {
  '01-router-metrics-poll-loads-models': { file: `${HERE}/watching.test.ts`, test: '01 router-metrics-poll' },
  '02-router-failed-flag-is-not-a-crash': { file: `${HERE}/watching.test.ts`, test: '02 router-failed-flag' },
  '03-router-unloaded-and-sleeping-hidden': { file: `${HERE}/watching.test.ts`, test: '03 router-unloaded' },
  '04-router-lru-evicts-loading-model': { file: `${HERE}/memory.test.ts`, test: '04 router-lru' },
  '06-router-preset-without-model': {
    file: 'test/core/backends/router-state.test.ts',
    test: 'one that does not move for ten minutes has failed',
  },
  '07-stopping-for-16-minutes': { file: `${HERE}/watching.test.ts`, test: '07 stopping' },
  '09-rocm-vram-floor-rises': { file: `${HERE}/memory.test.ts`, test: '09 rocm' },
  '10-settle-before-measuring': { file: `${HERE}/memory.test.ts`, test: '10 settle' },
  '11-swap-timeout-5s': { file: `${HERE}/watching.test.ts`, test: '11 swap-timeout' },
  '13-ttl-from-request-start': { file: `${HERE}/watching.test.ts`, test: '13 ttl' },
  '14-swap-thrash-num-ctx': { file: `${HERE}/watching.test.ts`, test: '14 swap-thrash' },
  '15-reload-loop-fit-negative': { file: `${HERE}/memory.test.ts`, test: '15 reload-loop' },
  '16-estimate-hybrid-over': { file: `${HERE}/memory.test.ts`, test: '16 estimate-hybrid' },
  '18-estimate-swa-both-ways': { file: `${HERE}/memory.test.ts`, test: '18 estimate-swa' },
  '19-estimate-mla-under': { file: `${HERE}/memory.test.ts`, test: '19 estimate-mla' },
  '21-estimate-vs-ps': { file: `${HERE}/memory.test.ts`, test: '21 estimate-vs-ps' },
  '23-fit-abort-explicit-ngl': { file: `${HERE}/memory.test.ts`, test: '23 fit-abort' },
  '24-host-mapped-weights-and-per-device-scratch': { file: `${HERE}/memory.test.ts`, test: '24 host-mapped' },
  '25-wayland-vram-exhaustion': { file: `${HERE}/memory.test.ts`, test: '25 wayland' },
  '26-compositor-spikes': { file: `${HERE}/memory.test.ts`, test: '26 compositor' },
  '28-vulkan-evicted-weights': {
    file: 'test/core/loop/speed-watch.test.ts',
    test: 'a model that has become slow (28-vulkan-evicted-weights)',
  },
  '29-amd-two-ideas-of-free': {
    file: 'test/core/ledger/ledger.test.ts',
    test: 'trusts the smaller of the driver and total minus the book',
  },
  '30-orphan-llama-server-windows': {
    file: 'test/integration/orphans.test.ts',
    test: 'whose router is gone is listed, and ended when a person names it',
  },
  '32-zombie-rows': { file: `${HERE}/processes.test.ts`, test: '32 zombie-rows' },
  // Windows is not read at all; the same on Linux, where cards go by their PCI address, is.
  '33-igpu-chosen-windows': {
    file: 'test/core/loop/off-card.test.ts',
    test: 'a model that should be on a card and is not (33-igpu-chosen, 38-resume-cpu-fallback)',
  },
  '35-strix-halo-total': {
    file: 'test/core/devices/memory-kinds.test.ts',
    test: 'a carve-out of 96 GB does not make an APU a discrete card',
  },
  '36-apu-carveout-eviction-storm': { file: `${HERE}/memory.test.ts`, test: '36 apu-carveout' },
  '38-resume-cpu-fallback': { file: `${HERE}/memory.test.ts`, test: '38 resume' },
  '39-tray-lock-screen': {
    file: 'test/shell/tray-host.test.ts',
    test: 'tells when the panel goes and comes back, once each',
  },
  '41-tray-duplicates': {
    file: 'test/shell/tray.test.ts',
    test: 'is made once, and sets a menu for each change',
  },
  '43-smi-boot-failure-cached': {
    file: 'test/core/devices/nvml.test.ts',
    test: 'a failure at boot is tried again with growing gaps and never remembered for ever',
  },
  '45-singleton-lock-zombie': {
    file: 'test/core/state-dir/runtime-lock.test.ts',
    test: 'leaves no lock behind a holder that was killed',
  },
  '46-cache-ram-cross-conversation': { file: `${HERE}/memory.test.ts`, test: '46 cache-ram' },
  '48-slot-save-no-op': {
    file: 'test/core/parking/reuse.test.ts',
    test: 'a server that reads everything again, twice in a row, is told and believed no more (48-slot-save-no-op)',
  },
  '49-disconnect-keeps-generating': {
    file: 'test/core/gateway/forward.test.ts',
    test: 'cuts the upstream off at once when the client leaves before the first byte',
  },
  '51-body-size-limit': {
    file: 'test/integration/gateway-turns.test.ts',
    test: 'a body over the limit with 413',
  },
};
