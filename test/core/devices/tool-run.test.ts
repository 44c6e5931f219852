import { expect, it } from 'vitest';
import { runTool } from '../../../electron/core/devices/tool-run.ts';

it('a tool that can not be started is an answer, also where the system refuses its process outright', async () => {
  const tooLong = 'x'.repeat(4_000_000);
  expect(await runTool('true', [tooLong])).toMatchObject({
    exitCode: null,
    output: expect.stringMatching(/E2BIG/),
  });
  expect(await runTool('no-such-tool-here', [])).toEqual({
    exitCode: null,
    output: 'no-such-tool-here is not installed',
  });
});
