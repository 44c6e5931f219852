import { describe, expect, it } from 'vitest';
import { listeningInodes } from '../../../electron/core/http/port-holder.ts';

const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1E65 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 51515 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1E65 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 51600 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:C001 0100007F:1E65 06 00000000:00000000 03:00000AAA 00000000     0        0 0 3 0000000000000000
   3: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7070 1 0000000000000000 100 0 0 10 0
`;

describe('who listens on a port', () => {
  it('is the socket in the LISTEN state on that local port, not a connection to it', () => {
    expect(listeningInodes(TABLE, 7781)).toEqual(['51515']);
    expect(listeningInodes(TABLE, 8080)).toEqual(['7070']);
    expect(listeningInodes(TABLE, 49153)).toEqual([]);
    expect(listeningInodes('', 7781)).toEqual([]);
  });
});
