import { describe, expect, it } from 'vitest';
import {
  ageText,
  bytesText,
  epochMs,
  glueUnits,
  hostOf,
  roomText,
  shortName,
  shortPaths,
  timeText,
  tokensText,
} from '../../../renderer/view/figures.ts';

describe('figures', () => {
  it('writes bytes without a .0 that says nothing, and unknown as unknown', () => {
    expect([4e9, 4.12e9, 10.6e9, 512e6, 0, null].map((bytes) => bytesText(bytes))).toEqual([
      '4 GB',
      '4.1 GB',
      '10.6 GB',
      '512 MB',
      '0 B',
      'unknown',
    ]);
    expect(bytesText(10e9)).toBe('10 GB');
  });

  it('never promises more room than there is', () => {
    for (const bytes of [12.99e9, 10e9, 9.99e9, 4.19e9, 1.05e9, 999e6, 314e6, 104e6]) {
      const [figure = '', unit] = roomText(bytes).split(' ');
      expect(Number(figure) * (unit === 'GB' ? 1e9 : 1e6), roomText(bytes)).toBeLessThanOrEqual(bytes);
    }
    expect(roomText(12.99e9)).toBe('12 GB');
    expect(roomText(4.19e9)).toBe('4.1 GB');
    expect(roomText(314e6)).toBe('310 MB');
  });

  it('writes ages in words, never below zero', () => {
    expect([0, 310, 900, 1000, 41_200, 130_000, -5].map(ageText)).toEqual([
      '0.0 s',
      '0.3 s',
      '0.9 s',
      '1 s',
      '41 s',
      '2 min',
      '0.0 s',
    ]);
  });

  it('writes the decimal mark of the reader’s country', () => {
    expect(bytesText(4.12e9, 'de-DE')).toBe('4,1 GB');
    expect(bytesText(4.12e9, 'en-GB')).toBe('4.1 GB');
  });

  it('writes the time of another day with its date', () => {
    const now = new Date(2025, 9, 14, 12, 0).getTime();
    expect(timeText(new Date(2025, 9, 14, 9, 5).toISOString(), now, 'de-DE')).toBe('09:05');
    expect(timeText(new Date(2025, 9, 12, 23, 59).toISOString(), now, 'de-DE')).toBe('12.10. 23:59');
    expect(timeText(new Date(2025, 9, 14, 9, 5).toISOString(), now, 'en-US')).toMatch(/^09:05\sAM$/);
    expect(timeText('not a time', now)).toBe('');
  });

  it('reads times and names as they come', () => {
    expect(epochMs(null)).toBeNull();
    expect(epochMs('nonsense')).toBeNull();
    expect(epochMs('1970-01-01T00:00:01.000Z')).toBe(1000);
    expect(shortName('router/org/model')).toBe('org/model');
    expect(shortName('plain')).toBe('plain');
    expect(hostOf('http://127.0.0.1:8080/v1')).toBe('127.0.0.1:8080');
    expect([900, 8192, 131_072].map(tokensText)).toEqual(['900', '8k', '128k']);
  });

  it('keeps a figure and its unit on one line, and touches nothing else', () => {
    expect(glueUnits('Room for a 4.1 GB model, 2 models, 30 MB.')).toBe(
      'Room for a 4.1\u00a0GB model, 2 models, 30\u00a0MB.',
    );
  });
});

describe('paths in a sentence', () => {
  it('keep their end where they are long, and addresses are left alone', () => {
    const told = (text: string): string => shortPaths(text);
    expect(told('Settings of /home/ada/.config/vram-landlord/config.yaml are in force.')).toBe(
      'Settings of …/vram-landlord/config.yaml are in force.',
    );
    expect(told('See /tmp/a-folder-with-a-long-name/config.yaml.')).toBe('See …/config.yaml.');
    expect(told('/etc/a/b.yaml and /tmp/x')).toBe('/etc/a/b.yaml and /tmp/x');
    const address = 'http://127.0.0.1:8080/v1/models/some-very-long-name/load/again';
    expect(told(address)).toBe(address);
    expect(told('router/some/very/long/model/name/of/many/parts')).toBe(
      'router/some/very/long/model/name/of/many/parts',
    );
  });
});
