import * as ToggleGroup from '@radix-ui/react-toggle-group';
import { memo, useEffect, useMemo, useState } from 'react';
import { strings } from '../strings.ts';
import { type Chart, chartOf, marksNear, readingAt } from '../view/chart.ts';
import { bytesText } from '../view/figures.ts';
import { exactText, momentText } from '../view/times.ts';
import { toneOf } from '../view/tones.ts';
import { useReplica } from './context.ts';
import { FloorAdviceCard } from './floor-advice.tsx';
import { MemoryChart } from './memory-chart.tsx';
import { ReplayPanel } from './replay-panel.tsx';
import { useAnswer } from './use-answer.ts';

const words = strings.history;

const DAY_MS = 86_400_000;
const RANGES = {
  '10m': 600_000,
  '1h': 3_600_000,
  '24h': DAY_MS,
  '7d': 7 * DAY_MS,
  '1y': 365 * DAY_MS,
} as const;
type Range = keyof typeof RANGES;
/** A reading is kept every ten seconds; looked at more often nothing is new. */
const EVERY_MS = 10_000;
const POINTS = 500;
const SHOWN_EVENTS = 12;

function isRange(value: string): value is Range {
  return Object.hasOwn(RANGES, value);
}

/** `atMs`: a moment to begin with; null: now. */
export function HistoryPage({ atMs }: { atMs: number | null }) {
  const [range, setRange] = useState<Range>('1h');
  /** End of what is shown; null: follows the clock. */
  const [endMs, setEndMs] = useState<number | null>(null);
  const [show, setShow] = useState<'all' | 'desktop'>('all');
  const devices = useReplica(({ state }) => state?.devices.map(({ id, name }) => ({ id, name })) ?? []);
  const [chosen, setChosen] = useState<string | null>(null);
  const device = devices.find(({ id }) => id === chosen) ?? devices[0];
  const [tick, setTick] = useState(() => Date.now());
  const spanMs = RANGES[range];
  useEffect(() => {
    if (atMs !== null) setEndMs(atMs + 600_000 < Date.now() ? atMs + 600_000 : null);
  }, [atMs]);
  useEffect(() => {
    if (endMs !== null) return;
    const timer = setInterval(() => {
      if (!document.hidden) setTick(Date.now());
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [endMs]);
  const toMs = endMs ?? tick;
  // One step on would show the present, or nearly.
  const reachesNow = toMs + spanMs * 0.55 >= Date.now();
  const { value: history, error } = useAnswer('history', {
    fromMs: toMs - spanMs,
    toMs,
    deviceId: null,
    points: POINTS,
  });
  const models = useReplica(({ state }) => (state?.models ?? []).map(({ id, status }) => ({ id, status })));
  const chart = useMemo(() => {
    if (history === null || device === undefined) return null;
    return chartOf(history, device.id, show, toneOf({ models }));
  }, [history, device, show, models]);

  const advice = history?.floors.find((one) => one.deviceId === device?.id) ?? null;

  return (
    <>
      <section className="card history" aria-labelledby="history-title">
        <div className="title">
          <h2 id="history-title">{words.title}</h2>
          <div className="tools">
            {devices.length > 1 && (
              <select
                aria-label={words.device}
                value={device?.id ?? ''}
                onChange={(event) => setChosen(event.target.value)}
              >
                {devices.map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </select>
            )}
            <Choice
              name={words.showName}
              value={show}
              options={words.show}
              choose={(value) => setShow(value === 'desktop' ? 'desktop' : 'all')}
            />
            <Choice
              name={words.rangeName}
              value={range}
              options={words.ranges}
              choose={(value) => {
                if (isRange(value)) setRange(value);
              }}
            />
            <span className="steps">
              <button type="button" className="small" onClick={() => setEndMs(toMs - spanMs / 2)}>
                {words.older}
              </button>
              <button
                type="button"
                className="small"
                disabled={endMs === null}
                onClick={() => setEndMs(reachesNow ? null : toMs + spanMs / 2)}
              >
                {endMs !== null && reachesNow ? words.latest : words.newer}
              </button>
            </span>
          </div>
        </div>
        {error !== null && <p className="notice warning">{error.message}</p>}
        {chart === null ? (
          <p className="empty">{history === null && error === null ? words.waiting : words.empty}</p>
        ) : (
          <ChartWithTable
            chart={chart}
            stepMs={history?.stepMs ?? EVERY_MS}
            name={words.chartName(device?.name ?? '', words.ranges[range])}
            atMs={atMs}
          />
        )}
      </section>
      <div className="two">
        <ReplayPanel deviceId={device?.id ?? null} advice={advice} />
        <div>
          <FloorAdviceCard advice={advice} />
          {chart !== null && <MarkList chart={chart} />}
        </div>
      </div>
    </>
  );
}

function Choice({
  name,
  value,
  options,
  choose,
}: {
  name: string;
  value: string;
  options: Readonly<Record<string, string>>;
  choose: (value: string) => void;
}) {
  return (
    <ToggleGroup.Root
      type="single"
      className="toggles"
      aria-label={name}
      value={value}
      // The group lets a pressed one be let go; here one is always chosen.
      onValueChange={(next) => next !== '' && choose(next)}
    >
      {Object.entries(options).map(([key, label]) => (
        <ToggleGroup.Item key={key} value={key} className="toggle">
          {label}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}

const ChartWithTable = memo(function ChartWithTable({
  chart,
  stepMs,
  name,
  atMs,
}: {
  chart: Chart;
  stepMs: number;
  name: string;
  atMs: number | null;
}) {
  const [index, setIndex] = useState<number | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new moment moves the cursor, not each new reading.
  useEffect(() => {
    if (atMs !== null) setIndex(readingAt(chart, atMs));
  }, [atMs, chart.fromMs]);
  const at = index === null ? chart.atMs.length - 1 : Math.min(index, chart.atMs.length - 1);
  const moment = chart.atMs[at] ?? chart.toMs;
  const near = marksNear(chart, at, stepMs);
  return (
    <div className="chart-and-table">
      <MemoryChart chart={chart} name={name} index={index} look={setIndex} />
      <div className="readout">
        <table>
          <caption aria-live="polite">{index === null ? words.now : words.at(exactText(moment))}</caption>
          <thead className="spoken">
            <tr>
              <th scope="col">{words.who}</th>
              <th scope="col">{words.at('')}</th>
              <th scope="col">{words.peak}</th>
            </tr>
          </thead>
          <tbody>
            {chart.bands.toReversed().map((band) => (
              <tr key={band.id}>
                <th scope="row">
                  <i className={`swatch tone-${band.tone}`} aria-hidden="true" />
                  {band.name}
                </th>
                <td>{bytesText(band.bytes[at] ?? null)}</td>
                <td className="peak">
                  {words.peak.toLowerCase()} {bytesText(band.peakBytes)}
                </td>
              </tr>
            ))}
            <tr>
              <th scope="row">
                <i className="swatch tone-free" aria-hidden="true" />
                {words.free}
              </th>
              <td>{bytesText(chart.freeBytes[at] ?? null)}</td>
              <td />
            </tr>
          </tbody>
        </table>
        {near.map((mark) => (
          <p key={mark.id} className={`near sev-${mark.severity}`}>
            <span className="kind">{mark.kind}</span> {mark.reason}
          </p>
        ))}
      </div>
    </div>
  );
});

const MarkList = memo(function MarkList({ chart }: { chart: Chart }) {
  const shown = chart.marks.toReversed().slice(0, SHOWN_EVENTS);
  const nowMs = Date.now();
  return (
    <section className="card" aria-labelledby="marks-title">
      <h2 id="marks-title">{words.eventsIn}</h2>
      {shown.length === 0 && <p className="empty">{words.noEvents}</p>}
      <ol className="rows">
        {shown.map((mark) => (
          <li key={mark.id} className={`event sev-${mark.severity}`}>
            <time dateTime={new Date(mark.atMs).toISOString()}>
              <a href={`#history-${mark.atMs}`}>{momentText(mark.atMs, nowMs)}</a>
            </time>
            <p>
              <span className="kind">{mark.kind}</span> {mark.reason}
            </p>
          </li>
        ))}
      </ol>
      {chart.marks.length > shown.length && (
        <p className="facts">{words.moreEvents(chart.marks.length - shown.length)}</p>
      )}
    </section>
  );
});
