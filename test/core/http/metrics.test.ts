import { describe, expect, it } from 'vitest';
import { renderMetrics } from '../../../electron/core/http/metrics.ts';
import type { LandlordState } from '../../../shared/state.ts';
import { sampleState } from '../../support/fake-runtime.ts';

/** Every sample line as name+labels → value. */
function samples(text: string): ReadonlyMap<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]),
  );
}

function withDevice(change: Partial<LandlordState['devices'][number]>): LandlordState {
  const state = sampleState();
  return { ...state, devices: state.devices.map((device) => ({ ...device, ...change })) };
}

const DEVICE = '{device="pci:0000:03:00.0",kind="amdgpu",name="Radeon Test 24"}';

describe('metrics', () => {
  it('gives each device its figures in bytes', async () => {
    const found = samples(await renderMetrics(sampleState(), new Map()));
    expect(found.get(`landlord_device_total_bytes${DEVICE}`)).toBe('24000000000');
    expect(found.get(`landlord_device_free_bytes${DEVICE}`)).toBe('9000000000');
    expect(found.get(`landlord_device_booked_bytes${DEVICE}`)).toBe('12000000000');
    expect(found.get(`landlord_device_floor_bytes${DEVICE}`)).toBe('3000000000');
    expect(found.get(`landlord_device_busy_ratio${DEVICE}`)).toBe('0.37');
  });

  it('leaves an unknown value out: it is never 0', async () => {
    const state = withDevice({
      totalBytes: null,
      usedBytes: null,
      freeBytes: null,
      busyPercent: null,
      floorBytes: null,
    });
    const text = await renderMetrics(state, new Map());
    expect(text).not.toMatch(/device_(total|used|free|floor|gtt_used)_bytes|busy_ratio/);
    expect(text).not.toMatch(/null|NaN|undefined/);
    expect(text).toContain(`landlord_device_booked_bytes${DEVICE} 12000000000\n`);
  });

  it('tells a model that is busy from one of which that is not known', async () => {
    const found = samples(await renderMetrics(sampleState(), new Map()));
    expect(found.get('landlord_model_busy{model="router/coder-9b"}')).toBe('1');
    expect(found.has('landlord_model_busy{model="router/bge"}')).toBe(false);
    expect(found.get('landlord_backend_up{backend="router"}')).toBe('1');
    expect(found.has('landlord_backend_up{backend="ollama"}')).toBe(false);
  });

  it('counts models by status and events by kind', async () => {
    const found = samples(await renderMetrics(sampleState(), new Map([['evicted', 3]])));
    expect(found.get('landlord_models{status="unloaded"}')).toBe('2');
    expect(found.get('landlord_models{status="loaded"}')).toBe('1');
    expect(found.get('landlord_events_total{kind="evicted"}')).toBe('3');
    expect(found.get('landlord_events_total{kind="denied"}')).toBe('0');
  });

  it('cannot be forged by a name with quotes and newlines', async () => {
    const text = await renderMetrics(withDevice({ name: 'a"} 1\nforged_metric 2\\' }), new Map());
    expect(text).not.toMatch(/^forged_metric/m);
    expect(text).toContain('name="a\\"} 1\\nforged_metric 2\\\\"');
  });

  it('writes lines as the text format has them', async () => {
    for (const line of (await renderMetrics(sampleState(), new Map()))
      .split('\n')
      .filter((one) => one !== '')) {
      expect(line).toMatch(
        /^(# (HELP|TYPE) landlord_\w+ .+|landlord_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[\d.]+)$/,
      );
    }
  });
});
