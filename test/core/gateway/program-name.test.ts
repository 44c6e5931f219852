import { describe, expect, it } from 'vitest';
import { programName } from '../../../electron/core/gateway/program-name.ts';

describe('a program’s name', () => {
  it.each([
    ['/usr/bin/python3 -u /opt/agents/writer.py --fast', 'writer.py'],
    ['/usr/bin/python3.12 -W ignore -X utf8 -m aider --model x', 'aider'],
    ['/usr/local/bin/aider --model x', 'aider'],
    ['node --import tsx --require ./setup.js --max-old-space-size=99 /srv/agent.ts', 'agent.ts'],
    ['/bin/bash ./indexer.sh', 'indexer.sh'],
    ['bash -e -x ./indexer.sh', 'indexer.sh'],
    ['bun run --watch chat.ts', 'chat.ts'],
    ['uv run --with openai writer.py', 'writer.py'],
    // Its text is no name.
    ['python3 -c import\u00a0openai', 'python3'],
    ['node -e fetch()', 'node'],
    ['/usr/bin/node', 'node'],
  ])('%s is %s', (line, name) => {
    expect(programName(line.split(' '))).toBe(name);
  });

  it('is found behind any length of path, and in a title', () => {
    const folder = `/home/a person/${'long/'.repeat(60)}`;
    expect(programName([`${folder}bin/python3`, '-u', `${folder}writer.py`])).toBe('writer.py');
    expect(programName([`${folder}my agent`, '--fast'])).toBe('my agent');
    expect(programName(['claude --resume', '', ''])).toBe('claude');
    expect(programName(['python3 /opt/writer.py'])).toBe('writer.py');
    expect(programName([])).toBeNull();
    expect(programName([''])).toBeNull();
  });
});
