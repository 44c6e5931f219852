import { describe, expect, it } from 'vitest';
import { demoStage, memoryText, storyText, wrapped } from '../../electron/cli/demo-stage.ts';
import { sampleState } from '../support/fake-runtime.ts';
import { landlord } from '../support/landlord.ts';

function screen(isLive: boolean, color = false) {
  const outs: string[] = [];
  const overs: string[] = [];
  const overwrite = isLive ? (text: string): void => void overs.push(text) : null;
  const out = (text: string): void => void outs.push(text);
  return { outs, overs, out, overwrite, color, unicode: true, columns: 60 };
}

describe('the demo in a terminal', () => {
  it('where nobody looks: whole plain lines, nothing redrawn, no escape sequence', () => {
    const to = screen(false);
    using stage = demoStage(to);
    const long = 'word '.repeat(40).trim();
    stage.live(sampleState());
    stage.say([
      { kind: 'tell', text: long },
      { kind: 'bad', text: 'It broke.' },
    ]);
    stage.say([{ kind: 'memory', state: sampleState() }]);
    expect(to.outs.slice(0, 2)).toEqual([long, 'It broke.']);
    expect(to.outs[2]).toMatch(/^\[.+\] 15\.0 GB of 24\.0 GB used, 9\.0 GB free/);
    expect(to.outs.join('')).not.toContain('\u001b');
  });

  it('on a terminal: one live line, gone before a sentence comes, and narrower than the screen', () => {
    const to = screen(true);
    const stage = demoStage(to);
    stage.live(sampleState());
    expect(to.overs).toHaveLength(1);
    expect([...(to.overs[0] ?? '')].length).toBeLessThan(60);
    stage.say([{ kind: 'tell', text: 'Hello.' }]);
    expect(to.overs).toEqual([to.overs[0], '']);
    stage.say([{ kind: 'tell', text: 'Again.' }]);
    expect(to.overs).toHaveLength(2);
    stage.live(sampleState());
    stage[Symbol.dispose]();
    expect(to.overs.at(-1)).toBe('');
  });

  it('colours only where colours are wanted', () => {
    const line = { kind: 'good', text: 'Fine.' } as const;
    expect(storyText(line, { color: false }, null)).toBe('Fine.');
    expect(storyText(line, { color: true }, null)).toBe('\u001b[32mFine.\u001b[0m');
  });

  it('breaks lines at spaces, keeps an address whole, and shows no control character', () => {
    expect(wrapped('one two three four', 9)).toEqual(['one two', 'three', 'four']);
    expect(wrapped('see http://127.0.0.1:1/?key=abcdefgh now', 10)).toEqual([
      'see',
      'http://127.0.0.1:1/?key=abcdefgh',
      'now',
    ]);
    expect(storyText({ kind: 'event', text: 'a\u001b[2Jb' }, { color: false }, 40)).toBe('  > a\\u{1b}[2Jb');
    expect(storyText({ kind: 'code', text: '  - indented' }, { color: false }, 40)).toBe('      - indented');
  });

  it('tells of memory pushed out only where there is some, and of no card at all', () => {
    const [device] = sampleState().devices;
    if (device === undefined) throw new Error('no device');
    const state = { devices: [{ ...device, gttUsedBytes: 7.2e9 }], tenants: [] };
    expect(memoryText(state, { unicode: false }, 90)).toMatch(/, 7\.2 GB out in system RAM$/);
    const none = { ...state, devices: [{ ...device, gttUsedBytes: null }] };
    expect(memoryText(none, { unicode: false }, 90)).toMatch(/9\.0 GB free$/);
    expect(memoryText({ devices: [], tenants: [] }, { unicode: false }, 90)).toContain('not been read');
  });
});

describe('landlord demo', () => {
  it('--help says what it does and that nothing of yours is touched', async () => {
    const ran = await landlord(['demo', '--help']);
    expect([ran.code, ran.err]).toEqual([0, '']);
    expect(ran.out).toContain('Usage: landlord demo [--port N] [--simulated]');
    expect(ran.out).toMatch(/under a minute[\s\S]*--simulated[\s\S]*are not touched/);
  });

  it('a port that is none is a usage error', async () => {
    const ran = await landlord(['demo', '--port', 'x']);
    expect([ran.code, ran.out]).toEqual([64, '']);
  });
});
