/**
 * node:http and node:https, without what an `import` of http loads. It reads every member there is, and the
 * getters of WebSocket and its like then load all of Node's own undici (nodejs/node, lib/http.js): 9 MB
 * resident and 25 ms of CPU in each process, measured with Node 24. Types are imported as ever.
 */
export const http = process.getBuiltinModule('node:http');
export const https = process.getBuiltinModule('node:https');
