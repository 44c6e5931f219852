import { describe, expect, it } from 'vitest';
import { parseBytes, parseDuration, parseSize } from '../../../electron/core/settings/units.ts';

describe('sizes', () => {
  it.each([
    ['4GB', 4_000_000_000],
    ['4 gb', 4_000_000_000],
    ['18.6GB', 18_600_000_000],
    ['512MiB', 536_870_912],
    ['1TiB', 1_099_511_627_776],
    ['3kB', 3000],
    [2_097_152, 2_097_152],
    ['2097152', 2_097_152],
    [0, 0],
  ])('%j is %d bytes', (text, bytes) => {
    expect(parseBytes(text)).toEqual({ ok: true, value: bytes });
  });

  it.each([
    ['4G', '4GB (decimal) or 4GiB (binary)'],
    [4, '4GB'],
    ['512', '512MiB'],
    ['12,5GB', '12.5GB'],
    ['-1GB', 'write an amount'],
    ['', 'write an amount'],
    ['4GBB', 'write an amount'],
    ['1e9', 'write an amount'],
    ['9999999999TB', 'check the unit'],
    [Number.NaN, 'write an amount'],
    [1.5, 'write an amount'],
    ['constructorGB', 'write an amount'],
    ['4constructor', 'write an amount'],
  ])('%j is no amount, and the answer says what to write', (text, words) => {
    const parsed = parseBytes(text);
    expect(parsed.ok ? '' : parsed.hint).toContain(words);
  });

  it('a share is of the whole device, from 0 to 100 percent, and only where one is understood', () => {
    expect(parseSize('12.5%')).toEqual({ ok: true, value: { share: 0.125 } });
    expect(parseSize('100 %')).toEqual({ ok: true, value: { share: 1 } });
    expect(parseSize('101%').ok).toBe(false);
    expect(parseSize('%').ok).toBe(false);
    expect(parseSize(0.125)).toMatchObject({ ok: false, hint: 'write the share in percent: 12.5%' });
    expect(parseBytes('12.5%').ok).toBe(false);
  });
});

describe('durations', () => {
  it.each([
    ['500ms', 500],
    ['180s', 180_000],
    ['1m', 60_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    ['1.5s', 1500],
    [0, 0],
  ])('%j is %d ms', (text, ms) => {
    expect(parseDuration(text)).toEqual({ ok: true, value: ms });
  });

  it.each([180, '180', '2 weeks', '', '-3s', '1h30m'])('%j is asked back', (text) => {
    expect(parseDuration(text).ok).toBe(false);
  });
});
