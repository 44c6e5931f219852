import type { AgentLine, DecodeAnswer, DeskRefusal, DeviceLine } from '../desk/desk-api.ts';

const SCHEMA = 'OK schema=lmx-daemon/1';

/** Answers of the ledger socket (design §5.4), each a list of lines. */
export function helpAnswer(): readonly string[] {
  return [
    'OK HELP  this list',
    'OK STATUS  one line a device: what is booked, free and kept, agents and live contexts',
    'OK LIST  one line an agent, then OK end',
    'OK REGISTER <agent><TAB><path.gguf>[<TAB>options]  books and loads; options: bind fit class=interactive|batch context=<tokens>',
    'OK   bind: released when this connection ends; fit: with the layers that fit, where not all do',
    'OK   a path in quotes, or without spaces, may also follow a space',
    'OK UNREGISTER <agent>  gives its memory back and forgets its conversation',
    'OK DECODE <agent> <n> <prompt>  goes on with its conversation, by at most n tokens',
    'OK   lines of a response that read END_RESPONSE have a space before them',
    'OK end',
  ];
}

export function statusAnswer(devices: readonly DeviceLine[]): readonly string[] {
  const several = devices.length > 1;
  return [
    SCHEMA,
    ...devices.map((device) =>
      [
        'OK',
        `ledger_max_bytes=${figure(device.maxBytes)}`,
        `ledger_allocated_bytes=${device.allocatedBytes}`,
        `device_free_bytes=${figure(device.freeBytes)}`,
        `floor_bytes=${figure(device.floorBytes)}`,
        `agents=${device.agents}`,
        `live_contexts=${device.liveContexts}`,
        ...(several ? [`device=${device.deviceId}`] : []),
      ].join(' '),
    ),
  ];
}

export function listAnswer(agents: readonly AgentLine[]): readonly string[] {
  return [...agents.map((agent) => `OK ${agentFields(agent)}`), 'OK end'];
}

export function registerAnswer(agent: AgentLine): readonly string[] {
  const layers = agent.gpuLayers === null ? '' : ` gpu_layers=${agent.gpuLayers}`;
  return [`OK ${agentFields(agent)} context_tokens=${agent.contextTokens}${layers}`];
}

export function unregisterAnswer(agent: string, releasedBytes: number): readonly string[] {
  return [`OK agent_id=${agent} released_bytes=${releasedBytes}`];
}

export function decodeAnswer(answer: DecodeAnswer): readonly string[] {
  const swap = [
    `OK kv_swap_evicted=${answer.evicted.length === 0 ? 'none' : answer.evicted.join(',')}`,
    `kv_swap_restored=${answer.restored}`,
    ...(answer.reevaluatedTokens > 0 ? [`kv_reevaluated_tokens=${answer.reevaluatedTokens}`] : []),
  ];
  const stop = [
    `OK prompt_tokens=${answer.promptTokens}`,
    `generated_tokens=${answer.generatedTokens}`,
    `stopped_on_eos=${answer.stoppedOnEos}`,
    ...(answer.contextFull ? ['context_full=true'] : []),
  ];
  return [
    SCHEMA,
    `OK invoke=DECODE agent_id=${answer.agent}`,
    stop.join(' '),
    `OK elapsed_ms=${answer.elapsedMs.toFixed(3)}`,
    swap.join(' '),
    'BEGIN_RESPONSE',
    // What a model says must not end its own answer.
    ...answer.text.split('\n').map((line) => (/^\s*END_RESPONSE\r?$/.test(line) ? ` ${line}` : line)),
    'END_RESPONSE',
  ];
}

/** A denial with its numbers, anything else as one sentence. */
export function refusalAnswer({ error, denial }: DeskRefusal): readonly string[] {
  if (denial === null || denial.code === 'BAD_INPUT' || denial.code === 'ALREADY_BOOKED')
    return [errorLine(error.code, error.message)];
  const floor =
    denial.code === 'CAP'
      ? []
      : [`free_bytes=${figure(denial.freeBytes)}`, `floor_bytes=${figure(denial.floorBytes)}`];
  return [
    [
      `ERR VRAM_LEDGER_DENY code=${denial.code}`,
      `ledger_max_bytes=${figure(denial.capBytes)}`,
      `ledger_allocated_bytes=${denial.bookedBytes}`,
      `requested_table_bytes=${denial.requestedBytes}`,
      ...floor,
    ].join(' '),
  ];
}

/** One line, and nothing of what it quotes moves or hides in a terminal. */
export function errorLine(code: string, message: string): string {
  const line = message.replaceAll(/\s+/g, ' ');
  return `ERR ${code}: ${line.replaceAll(/[\p{Cc}\p{Cf}]/gu, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)}`;
}

function agentFields(agent: AgentLine): string {
  const model = /[\s"\p{Cc}]/u.test(agent.path) ? JSON.stringify(agent.path) : agent.path;
  return `agent_id=${agent.agent} model=${model} booked_bytes=${agent.bookedBytes} kv=${agent.kv}`;
}

/** What is not known is no number. */
function figure(bytes: number | null): string {
  return bytes === null ? 'unknown' : String(bytes);
}
