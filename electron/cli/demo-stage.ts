import { formatBytes } from '../../shared/format.ts';
import type { LandlordState } from '../../shared/state.ts';
import type { Stage, StoryLine } from '../core/demo/stage.ts';
import { budgetCells, drawBar } from './budget-bar.ts';
import { paint, plain, type Terminal, type Tone } from './terminal.ts';

export interface DemoScreen extends Pick<Terminal, 'out' | 'color' | 'unicode' | 'columns'> {
  /** Writes over the line the cursor is on; null: nobody looks, so there is no live line. */
  readonly overwrite: ((text: string) => void) | null;
}

const TONES: Readonly<Record<Exclude<StoryLine['kind'], 'memory'>, Tone | null>> = {
  act: 'bold',
  tell: null,
  aside: 'quiet',
  event: 'warning',
  good: 'good',
  bad: 'bad',
  code: null,
};
const TEXT_COLUMNS = 96;
const MOST_CELLS = 40;

/** Shows the story: sentences in plain lines, and on a terminal one live line with the card's memory below them. */
export function demoStage(screen: DemoScreen): Stage & Disposable {
  const columns = Math.min(screen.columns, TEXT_COLUMNS);
  const { overwrite } = screen;
  let shown = false;
  let afterBlank = false;
  const clear = (): void => {
    if (shown) overwrite?.('');
    shown = false;
  };
  return {
    say(lines) {
      clear();
      for (const line of lines) {
        const text =
          line.kind === 'memory'
            ? memoryText(line.state, screen, columns)
            : storyText(line, screen, overwrite === null ? null : columns);
        // Headings stand apart on both sides; a look at the card ends a paragraph.
        const isAct = line.kind === 'act';
        const lead = isAct && !afterBlank ? '\n' : '';
        afterBlank = isAct || line.kind === 'memory';
        screen.out(`${lead}${text}${afterBlank ? '\n' : ''}`);
      }
    },
    live(state) {
      if (overwrite === null) return;
      overwrite(memoryText(state, screen, Math.min(columns, screen.columns - 1)));
      shown = true;
    },
    [Symbol.dispose]: clear,
  };
}

/** `width` null: as one line, however long. */
export function storyText(
  line: Exclude<StoryLine, { kind: 'memory' }>,
  screen: Pick<Terminal, 'color'>,
  width: number | null,
): string {
  const text = plain(line.text);
  const tone = TONES[line.kind];
  const indent = line.kind === 'event' ? '  > ' : line.kind === 'code' ? '    ' : '';
  // What is to be copied keeps its lines and its spaces.
  const lines = width === null || line.kind === 'code' ? [text] : wrapped(text, width - indent.length);
  const shown = lines.map((part, index) => {
    const lead = index === 0 ? indent : ' '.repeat(indent.length);
    return lead + (tone === null ? part : paint(screen, tone, part));
  });
  return shown.join('\n');
}

/** Broken at spaces; a word longer than a line stays whole, so that an address can be copied. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** `[████▓░╌╌] 33.9 of 34.2 GB used, 0.3 GB free, 9.6 GB pushed out to system RAM` */
export function memoryText(
  state: Pick<LandlordState, 'devices' | 'tenants'>,
  screen: Pick<Terminal, 'unicode'>,
  columns: number,
): string {
  const [device] = state.devices;
  if (device === undefined) return 'The card has not been read yet.';
  const gttBytes = device.gttUsedBytes ?? 0;
  const figures = `${formatBytes(device.usedBytes)} of ${formatBytes(device.totalBytes)} used, ${formatBytes(device.freeBytes)} free${
    gttBytes > 0 ? `, ${formatBytes(gttBytes)} out in system RAM` : ''
  }`;
  const cellCount = Math.max(10, Math.min(MOST_CELLS, columns - figures.length - 3));
  const tenants = state.tenants.filter((tenant) => tenant.deviceId === device.id);
  const cells = budgetCells(device, tenants, cellCount);
  return cells === null ? figures : `${drawBar(cells, screen.unicode)} ${figures}`;
}
