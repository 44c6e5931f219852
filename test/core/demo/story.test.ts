import { describe, expect, it } from 'vitest';
import type { Answer } from '../../../electron/core/demo/demo-router.ts';
import type { StoryLine } from '../../../electron/core/demo/stage.ts';
import * as story from '../../../electron/core/demo/story.ts';
import type { LandlordEvent } from '../../../shared/events.ts';

const text = (lines: readonly StoryLine[]): string =>
  lines.map((line) => (line.kind === 'memory' ? '' : line.text)).join('\n');
const answer = (change: Partial<Answer> = {}): Answer => ({
  status: 200,
  error: null,
  tookMs: 4_100,
  ...change,
});
const event = (change: Partial<LandlordEvent> = {}): LandlordEvent => ({
  id: 7,
  at: '2026-03-04T09:00:00.000Z',
  kind: 'killed',
  reason: 'It was in the way.',
  numbers: { tookMs: 1_130 },
  ...change,
});
const morning = (change: Partial<story.Morning> = {}): story.Morning => ({
  freeWhenAskedBytes: 0.4e9,
  gttBytes: 7.7e9,
  bigAnswer: answer({ status: 500, tookMs: 3_200 }),
  readerGoneMs: 10_040,
  ...change,
});
const NAMES = { big: 'big-model', reader: 'reading-model' };

describe('what the demo says', () => {
  it('quotes an event in its own words', () => {
    expect(story.eventLine(event())).toEqual({ kind: 'event', text: 'killed: It was in the way.' });
  });

  it('tells who plays: a real server with its version, or stand-ins and why', () => {
    const say = (players: story.Players) =>
      text(story.prologue({ totalBytes: 34.2e9, players, loadMs: 3_300, url: 'http://127.0.0.1:1/?key=k' }));
    expect(say({ real: true, version: '9.8.7' })).toContain('real llama.cpp router (llama-server 9.8.7)');
    expect(say({ real: false, why: 'none found' })).toMatch(/No llama-server was found.*fetch-llama-server/);
    expect(say({ real: false, why: 'asked for' })).not.toContain('No llama-server was found');
    expect(say({ real: false, why: 'asked for' })).toContain('stand-in');
    expect(say({ real: true, version: '9' })).toContain('http://127.0.0.1:1/?key=k');
  });

  it('says what was measured, not what the story expects', () => {
    const facts = { model: 'm', modelBytes: 20e9, usedBytes: 31e9, totalBytes: 32e9, freeBytes: 1e9 };
    expect(text(story.filled({ ...facts, answer: answer() }))).toContain(
      'takes 20.0 GB and answers after 4.1 s. Now 31.0 GB of 32.0 GB is used: 1.0 GB is left',
    );
    const lost = { ...NAMES, answer: answer({ status: 503, error: 'full up' }), missingBytes: 2.5e9 };
    expect(text(story.lostRace({ ...lost, readerGoneMs: null }))).toMatch(
      /2\.5 GB was missing.*after 4\.1 s with HTTP 503 \(full up\)/,
    );
    expect(text(story.lostRace({ ...lost, missingBytes: null, readerGoneMs: null }))).not.toContain(
      'missing',
    );
  });

  it('an unknown figure is unknown, never 0', () => {
    expect(text(story.stoppedByHand({ model: 'm', tookMs: 300, freeBytes: null }))).toContain(
      'unknown is free again',
    );
  });

  it('speaks of a kill only where one was', () => {
    const facts = { reader: 'r', pid: 4321, readerGoneMs: 1_130 };
    expect(text(story.madeWay({ ...facts, event: event() }))).toMatch(
      /process 4321, proven.*killed: gone 1\.1 s/,
    );
    const left = text(story.madeWay({ ...facts, event: event({ kind: 'evicted' }) }));
    expect(left).not.toContain('was killed');
    expect(left).toContain('gone 1.1 s later');
  });

  it('tells of the router’s force only where it was waited for', () => {
    const lost = { ...NAMES, answer: answer({ status: 500 }), missingBytes: null };
    expect(story.readerGone({ ...lost, readerGoneMs: null })).toEqual([]);
    expect(text(story.readerGone({ ...lost, readerGoneMs: 10_040 }))).toContain('10 s after it was asked to');
  });

  it('ends with three lines, each with the figure of both', () => {
    const on = morning({ freeWhenAskedBytes: 21e9, gttBytes: 0, bigAnswer: answer(), readerGoneMs: 1_130 });
    const lines = story.ending(NAMES, morning(), on).slice(1);
    expect(lines.map((line) => (line.kind === 'tell' ? line.text : ''))).toEqual([
      "The music player's wish: 400 MB free, 7.7 GB pushed out to system RAM. With the guards: 21.0 GB free, nothing pushed out.",
      'The request to big-model: HTTP 500 after 3.2 s. With the guards: an answer after 4.1 s.',
      'The memory of reading-model once it was asked to stop: back after 10 s. With the guards: after 1.1 s.',
    ]);
  });

  it('claims no success of the guards that was none', () => {
    const text3 = text(story.ending(NAMES, morning(), morning({ readerGoneMs: null })));
    expect(text3).toContain('With the guards: HTTP 500 after 3.2 s');
    expect(text3).toContain('With the guards: too late');
    expect(text3).toContain('With the guards: 400 MB free, 7.7 GB pushed out');
  });

  it('says what to do next: the command and settings to copy', () => {
    expect(text(story.whatNext())).toMatch(/npm start[\s\S]*config\.yaml[\s\S]*kind: llama\.cpp/);
  });
});
