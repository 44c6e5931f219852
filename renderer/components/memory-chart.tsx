import { type KeyboardEvent, memo, useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { strings } from '../strings.ts';
import type { Chart } from '../view/chart.ts';
import { bytesText } from '../view/figures.ts';
import { axisTime } from '../view/times.ts';

interface Props {
  readonly chart: Chart;
  readonly name: string;
  /** The reading that is looked at; null: the last. */
  readonly index: number | null;
  readonly look: (index: number | null) => void;
}

const HEIGHT = 270;

/** The chart is drawn for the eye and the pointer; the table beside it says the same in words and figures. */
export const MemoryChart = memo(function MemoryChart({ chart, name, index, look }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ chart, look });
  latest.current = { chart, look };
  const shape = chart.bands.map((band) => `${band.id} ${band.tone}`).join('|');
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new chart only for new bands; new readings go into the one there is.
  useEffect(() => {
    const node = place.current;
    if (node === null) return;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(node, latest), dataOf(latest.current.chart), node);
    };
    draw();
    const resized = new ResizeObserver(() => {
      const width = node.clientWidth;
      if (width > 0 && plot.current?.width !== width) plot.current?.setSize({ width, height: HEIGHT });
    });
    resized.observe(node);
    const theme = matchMedia('(prefers-color-scheme: dark)');
    theme.addEventListener('change', draw);
    return () => {
      theme.removeEventListener('change', draw);
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    plot.current?.setData(dataOf(chart));
  }, [chart]);
  useEffect(() => {
    const now = plot.current;
    const at = index === null ? undefined : chart.atMs[index];
    if (now === null || at === undefined) return;
    const left = now.valToPos(at / 1000, 'x');
    if (Math.abs((now.cursor.left ?? -10) - left) > 1) now.setCursor({ left, top: HEIGHT / 3 }, false);
  }, [chart, index]);

  const last = chart.atMs.length - 1;
  const move = (event: KeyboardEvent): void => {
    const from = index ?? last;
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    look(Math.min(last, Math.max(0, to)));
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a chart that is walked through with the arrow keys has no element of its own.
    <div
      className="chart"
      role="group"
      aria-label={name}
      aria-describedby="chart-help"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys move its cursor.
      tabIndex={0}
      onKeyDown={move}
      onPointerLeave={() => look(null)}
    >
      <div ref={place} className="plot" aria-hidden="true" />
      <p id="chart-help" className="spoken">
        {strings.history.chartHelp}
      </p>
    </div>
  );
});

/** Bands are drawn from the top edge down, so that each covers what is above the one below it. */
function dataOf(chart: Chart): uPlot.AlignedData {
  const edges = chart.bands.map((band) => [...band.edge]).reverse();
  return [chart.atMs.map((at) => at / 1000), ...edges];
}

function optionsOf(
  node: HTMLElement,
  latest: { readonly current: { readonly chart: Chart; readonly look: (index: number | null) => void } },
): uPlot.Options {
  const css = getComputedStyle(node);
  const colour = (name: string): string => css.getPropertyValue(`--${name}`).trim();
  const { chart } = latest.current;
  const axis = {
    stroke: colour('mute'),
    grid: { stroke: colour('line'), width: 1 },
    ticks: { show: false },
    font: `12px ${css.fontFamily}`,
  };
  return {
    width: Math.max(200, node.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
    scales: {
      x: { range: () => [latest.current.chart.fromMs / 1000, latest.current.chart.toMs / 1000] },
      y: { range: (_plot, _least, most) => [0, topOf(latest.current.chart, most)] },
    },
    axes: [
      {
        ...axis,
        space: 84,
        size: 30,
        values: (_plot, splits) => {
          const { fromMs, toMs } = latest.current.chart;
          return splits.map((at) => axisTime(at * 1000, toMs - fromMs));
        },
      },
      { ...axis, size: 62, values: (_plot, splits) => splits.map((bytes) => bytesText(bytes)) },
    ],
    series: [
      {},
      ...chart.bands.toReversed().map((band) => ({
        label: band.name,
        stroke: colour(band.tone),
        fill: colour(band.tone),
        width: 1,
        points: { show: false },
      })),
    ],
    hooks: {
      draw: [(plot) => drawMarks(plot, latest.current.chart, colour)],
      setCursor: [
        (plot) => {
          const { idx, left = -1 } = plot.cursor;
          if (left >= 0 && idx !== null && idx !== undefined) latest.current.look(idx);
        },
      ],
    },
  };
}

/** Alone the desktop fills the height; all together stay under the card's own total. */
function topOf(chart: Chart, most: number): number {
  return chart.bands.length === 1 ? Math.max(most * 1.15, 1e8) : (chart.totalBytes ?? most);
}

const MARK_COLOURS = { info: 'mute', notice: 'ink', warning: 'warn', critical: 'bad' } as const;

function drawMarks(plot: uPlot, chart: Chart, colour: (name: string) => string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  if (chart.limitBytes !== null) {
    const y = Math.round(plot.valToPos(chart.limitBytes, 'y', true));
    ctx.strokeStyle = colour('ink');
    ctx.lineWidth = ratio;
    ctx.setLineDash([5 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  for (const mark of chart.marks) {
    const x = Math.round(plot.valToPos(mark.atMs / 1000, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.fillStyle = colour(MARK_COLOURS[mark.severity]);
    ctx.globalAlpha = 0.5;
    ctx.fillRect(x, bbox.top, ratio, bbox.height);
    ctx.globalAlpha = 1;
    ctx.beginPath();
    ctx.moveTo(x - 4 * ratio, bbox.top - 7 * ratio);
    ctx.lineTo(x + 5 * ratio, bbox.top - 7 * ratio);
    ctx.lineTo(x + 0.5 * ratio, bbox.top);
    ctx.fill();
  }
  ctx.restore();
}
