import { describe, expect, it } from 'vitest';
import { sizeYaml } from '../../../renderer/change-setting.ts';
import { withBackend } from '../../../renderer/view/settings.ts';
import { usualFloor } from '../../../renderer/view/start.ts';
import { axisTime, momentText } from '../../../renderer/view/times.ts';

const ROUTER = { name: 'router', kind: 'llama.cpp', url: 'http://127.0.0.1:8080' };
const LINE = '{ name: router, kind: llama.cpp, url: "http://127.0.0.1:8080" }';

describe('what the page writes into the config', () => {
  it('adds a server behind what a person wrote, in either form of list', () => {
    expect(withBackend(null, ROUTER)).toBe(`- ${LINE}`);
    expect(withBackend('- { name: a }  # mine', ROUTER)).toBe(`- { name: a }  # mine\n- ${LINE}`);
    expect(withBackend('[ { name: a } ]', ROUTER)).toBe(`[ { name: a }, ${LINE} ]`);
  });

  it('rounds a floor up, never down', () => {
    expect([1.32e9, 4e9, 640e6, 12.01e9].map(sizeYaml)).toEqual(['1.4GB', '4GB', '640MB', '12.1GB']);
  });

  it('proposes the built-in floor of the card', () => {
    expect([usualFloor(24e9), usualFloor(32e9), usualFloor(null)]).toEqual([3e9, 4e9, 4e9]);
  });
});

describe('times as the reader’s country writes them', () => {
  it('has the date only on another day', () => {
    const at = new Date(2026, 2, 4, 14, 5).getTime();
    expect(momentText(at, at, 'en-GB')).toBe('14:05');
    expect(momentText(at, at + 86_400_000, 'en-GB')).toBe('04/03 14:05');
    expect(momentText(at, at + 86_400_000, 'de-DE')).toBe('04.03. 14:05');
    expect(momentText(at, at, 'en-US')).toMatch(/^02:05\sPM$/);
    expect(momentText(Number.NaN, at)).toBe('');
  });

  it('tells the ticks of a short and of a long axis apart', () => {
    const at = new Date(2026, 2, 4, 14, 5, 9).getTime();
    expect(axisTime(at, 3_600_000, 'en-GB')).toBe('14:05');
    expect(axisTime(at, 60_000, 'en-GB')).toBe('14:05:09');
    expect(axisTime(at, 7 * 86_400_000, 'en-GB')).toBe('Wed 04');
    expect(axisTime(at, 365 * 86_400_000, 'en-GB')).toBe('Mar 26');
  });
});
