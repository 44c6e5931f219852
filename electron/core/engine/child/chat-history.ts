import type { ChatHistoryItem, ChatModelFunctionCall, ChatModelFunctions } from 'node-llama-cpp';
import { fail, ok, type Result } from '../../../../shared/errors.ts';
import type { ChatMessage, ChatTool } from '../engine-chat.ts';
import { engineSchema } from './json-schema.ts';

/**
 * Messages as the library keeps them: what a tool answered belongs to the call in the model's own turn.
 * Errors: `bad_input` for an answer to a call that nobody made.
 */
export function historyOf(messages: readonly ChatMessage[]): Result<ChatHistoryItem[]> {
  const history: ChatHistoryItem[] = [];
  const open = new Map<string, ChatModelFunctionCall>();
  for (const message of messages) {
    switch (message.role) {
      case 'system':
      case 'user':
        history.push({ type: message.role, text: message.text });
        break;
      case 'assistant': {
        const calls = message.calls.map((call): ChatModelFunctionCall => {
          const made: ChatModelFunctionCall = {
            type: 'functionCall',
            name: call.name,
            params: parsed(call.arguments),
            result: undefined,
          };
          open.set(call.id, made);
          return made;
        });
        const response = [...(message.text === '' ? [] : [message.text]), ...calls];
        const last = history.at(-1);
        // After its tools answered, the model goes on in the same turn.
        if (last?.type === 'model') last.response.push(...response);
        else history.push({ type: 'model', response });
        break;
      }
      case 'tool': {
        const call = open.get(message.callId);
        if (call === undefined) {
          return fail(
            'bad_input',
            `A tool's answer names the call ${message.callId}, which no message before it makes.`,
          );
        }
        call.result = parsed(message.text);
        break;
      }
    }
  }
  return ok(history);
}

export function functionsOf(tools: readonly ChatTool[]): ChatModelFunctions {
  return Object.fromEntries(
    tools.map((tool) => [
      tool.name,
      {
        ...(tool.description === null ? {} : { description: tool.description }),
        ...(tool.parameters === null ? {} : { params: engineSchema(tool.parameters) }),
      },
    ]),
  );
}

/** JSON where it is that, else the text itself. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
