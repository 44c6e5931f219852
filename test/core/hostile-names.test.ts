import { homedir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { agentLines } from '../../electron/cli/agent-text.ts';
import { eventLine } from '../../electron/cli/event-text.ts';
import { laneLines } from '../../electron/cli/lane-text.ts';
import { modelLines } from '../../electron/cli/model-text.ts';
import { statusText } from '../../electron/cli/status-text.ts';
import { syslogLine } from '../../electron/core/events/syslog-line.ts';
import { renderMetrics } from '../../electron/core/http/metrics.ts';
import { parseSettings } from '../../electron/core/settings/parse-settings.ts';
import { settingsToYamlPatch, withYamlAt } from '../../electron/core/settings/yaml-patch.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { HOSTILE_NAMES, UNSAFE } from '../support/hostile-names.ts';
import { loadState, stateNames } from '../support/states.ts';

const NOW_MS = Date.parse('2026-03-04T09:00:00Z');
const LOOK = { color: false, unicode: true, columns: 100 };

/** Every text of a value that a person, a model or another program may have chosen. */
function renamed<T>(value: T, name: string): T {
  const chosen = new Set([
    'name',
    'reason',
    'session',
    'error',
    'text',
    'model',
    'url',
    'version',
    'turn',
    'id',
  ]);
  const walk = (at: unknown, key: string): unknown => {
    if (typeof at === 'string') return chosen.has(key) ? name : at;
    if (Array.isArray(at)) return at.map((one) => walk(one, key));
    if (typeof at !== 'object' || at === null) return at;
    return Object.fromEntries(Object.entries(at).map(([inner, one]) => [inner, walk(one, inner)]));
  };
  return JSON.parse(JSON.stringify(walk(value, ''))) as T;
}

describe.each(HOSTILE_NAMES)('a name such as %j', (name) => {
  it('is harmless in a terminal, whatever it names', () => {
    for (const state of stateNames) {
      const scenario = renamed(loadState(state, NOW_MS), name);
      const text = statusText(scenario.state, scenario.events, NOW_MS, LOOK);
      const lines = [
        ...text.split('\n'),
        ...modelLines(scenario.state.models, NOW_MS, LOOK),
        ...agentLines(scenario.state.agents, NOW_MS, LOOK),
        ...laneLines(scenario.state.lanes, NOW_MS, LOOK),
        ...scenario.events.map((event) => eventLine(event, NOW_MS, LOOK)),
      ];
      for (const line of lines) expect(line).not.toMatch(UNSAFE);
      // It adds no line: as many as the same state has with a plain name.
      const plain = renamed(loadState(state, NOW_MS), 'plain');
      expect(text.split('\n').length).toBe(
        statusText(plain.state, plain.events, NOW_MS, LOOK).split('\n').length,
      );
    }
  });

  it('is the label of a metric, and no line of its own', async () => {
    const { state } = renamed(loadState('fine', NOW_MS), name);
    const labels = new Set<string>();
    for (const line of (await renderMetrics(state, new Map())).split('\n')) {
      expect(line).toMatch(/^(?:#.*|[\w:]+(?:\{(?:\w+="(?:[^"\\]|\\["\\n])*",?)*\})? [\d.eE+-]+|)$/u);
      const label = /model="((?:[^"\\]|\\.)*)"/u.exec(line)?.[1];
      if (label !== undefined) labels.add(label.replaceAll(/\\(.)/g, (_, one) => (one === 'n' ? '\n' : one)));
    }
    expect([...labels]).toEqual([name]);
  });

  it('is one line of the system log', () => {
    const event: LandlordEvent = {
      id: 1,
      at: '2026-03-04T09:00:00Z',
      kind: 'evicted',
      reason: `Unloaded ${name}.`,
      model: name,
      numbers: {},
    };
    expect(syslogLine(event)).not.toMatch(UNSAFE);
    expect(syslogLine(event)).toMatch(/^evicted /);
  });

  it('goes into the YAML and comes back as it was, as a key and as a value', () => {
    const before = '# mine\nfloor: 4GB # kept\n';
    const asKey = settingsToYamlPatch(before, ['footprints', name], '8GB');
    const asValue = settingsToYamlPatch(before, ['pinned'], [name]);
    if (!asKey.ok || !asValue.ok) throw new Error('it was not written');
    expect(Object.keys(parse(asKey.value).footprints)).toEqual([name]);
    expect(parse(asValue.value).pinned).toEqual([name]);
    for (const { value } of [asKey, asValue]) {
      expect(value.startsWith(before)).toBe(true);
      expect(Object.keys(parse(value))).toHaveLength(2);
      // What is read of it is its own name or a sentence, and never another setting.
      const settings = parseSettings(value, '/c/config.yaml', homedir());
      if (settings.ok) expect(settings.value.floor.keep).toEqual({ bytes: 4_000_000_000 });
    }
  });

  it('typed as a value by hand becomes no further key', () => {
    const done = withYamlAt('floor: 4GB\n', 'pinned', JSON.stringify([name]));
    if (!done.ok) throw new Error(done.error.message);
    expect(parse(done.value)).toEqual({ floor: '4GB', pinned: [name] });
  });
});
