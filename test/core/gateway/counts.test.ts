import { describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../../electron/core/events/request-record.ts';
import { Counts } from '../../../electron/core/gateway/counts.ts';

function record(more: Partial<RequestRecord> = {}): RequestRecord {
  return {
    atMs: 0,
    model: 'router/small',
    backend: 'router',
    agent: 'writer',
    class: 'interactive',
    route: 'local',
    reason: null,
    status: 200,
    promptTokens: 10,
    generatedTokens: 24,
    waitedMs: 1500,
    firstByteMs: 200,
    totalMs: 900,
    ...more,
  };
}

describe('the gateway’s figures for Prometheus', () => {
  it('count each request, also those that end before anybody has asked', async () => {
    const counts = new Counts();
    counts.add(record());
    counts.add(record({ firstByteMs: 2_000 }));
    counts.add(record({ class: 'batch', status: null, firstByteMs: null, generatedTokens: null }));
    const text = await counts.render(3);
    expect(text).toContain('landlord_requests_total{route="local",class="interactive",code="200"} 2\n');
    expect(text).toContain('landlord_requests_total{route="local",class="batch",code="left"} 1\n');
    expect(text).toContain('landlord_requests_in_flight 3\n');
    expect(text).toContain('landlord_first_byte_seconds_bucket{le="0.25"} 1\n');
    expect(text).toContain('landlord_first_byte_seconds_bucket{le="+Inf"} 2\n');
    expect(text).toContain('landlord_request_wait_seconds_total 4.5\n');
    expect(text).toContain('landlord_generated_tokens_total 48\n');
    counts.add(record());
    expect(await counts.render(0)).toContain('code="200"} 3\n');
  });

  it('of two gateways in one process are their own', async () => {
    const [one, other] = [new Counts(), new Counts()];
    one.add(record());
    expect(await one.render(0)).toContain('landlord_generated_tokens_total 24\n');
    expect(await other.render(0)).toContain('landlord_generated_tokens_total 0\n');
  });
});
