import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { laneFiles, parseWidth, slotFiles } from '../../../electron/core/gate/lane-files.ts';
import { readWidth } from '../../../electron/core/gate/width.ts';
import { tempFolder } from '../../support/gate.ts';

describe('the files of a lane', () => {
  const lane = laneFiles('/r', '127.0.0.1_8080');

  it('are named as other programs look for them', () => {
    expect(slotFiles(lane, 0)).toEqual({
      index: 0,
      lock: '/r/127.0.0.1_8080.lock',
      sidecar: '/r/127.0.0.1_8080.json',
    });
    expect(slotFiles(lane, 2)).toEqual({
      index: 2,
      lock: '/r/127.0.0.1_8080.2.lock',
      sidecar: '/r/127.0.0.1_8080.2.json',
    });
    expect(lane.width).toBe('/r/127.0.0.1_8080.width');
  });

  it.each([
    ['3\n', 3],
    [' 1 ', 1],
    ['256', 256],
    ['', null],
    ['0', null],
    ['-1', null],
    ['1.5', null],
    ['257', null],
    ['many', null],
  ])('width %j is %s', (text, width) => {
    expect(parseWidth(text)).toBe(width);
  });

  it('are one turn wide without a width file or with a bad one', () => {
    using folder = tempFolder();
    const here = laneFiles(folder.path, '127.0.0.1_1');
    expect(readWidth(here)).toEqual({ width: 1, garbage: null });
    writeFileSync(here.width, '4\n');
    expect(readWidth(here)).toEqual({ width: 4, garbage: null });
    writeFileSync(here.width, 'wide');
    expect(readWidth(here)).toEqual({ width: 1, garbage: expect.any(String) });
  });
});
