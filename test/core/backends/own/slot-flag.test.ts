import { expect, it } from 'vitest';
import { withSlotFolder } from '../../../../electron/core/backends/own/slot-flag.ts';

it('a llama-server of ours keeps what it has read, unless it says where itself; others are left alone', () => {
  const flag = ['--slot-save-path', '/state/parked'];
  const with_ = (command: readonly string[]): readonly string[] => withSlotFolder(command, '/state/parked');
  expect(with_(['llama-server', '--port', '1'])).toEqual(['llama-server', '--port', '1', ...flag]);
  const wrapped = ['/usr/bin/env', 'A=b', '/opt/llama-server', '--port', '1'];
  expect(with_(wrapped)).toEqual([...wrapped, ...flag]);
  for (const command of [
    ['llama-server', '--slot-save-path', '/mine'],
    ['llama-server', '--slot-save-path=/mine'],
    ['llama-swap', '--config', 'llama-server'],
    ['ollama', 'serve'],
    ['env'],
  ])
    expect(with_(command)).toEqual(command);
});
