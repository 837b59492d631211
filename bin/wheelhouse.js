#!/usr/bin/env node
// CommonJS, as `package.json` beside it says: node's loader of ES modules costs a tenth of a start.
const { setFlagsFromString } = require('node:v8');
const { loadBundle } = require('./load-bundle.js');
const { requireBuild } = require('./require-build.js');

const { main } = loadBundle(requireBuild('wheelhouse.cjs')).exports;
// A request runs through hundreds of small functions, more than V8 joins by itself. Said only now,
// since the code the build kept is refused under other flags than it was made with.
setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000');
// Exit by name: a library's stray timer must not keep a stopped server alive.
main(process.argv.slice(2)).then((code) => process.exit(code));
