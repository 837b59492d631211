#!/usr/bin/env node
// CommonJS, as `package.json` beside it says: node's loader of ES modules costs a tenth of a start.
const { loadBundle } = require('./load-bundle.js');
const { requireBuild } = require('./require-build.js');

const { main } = loadBundle(requireBuild('wheelhouse.cjs')).exports;
// Exit by name: a library's stray timer must not keep a stopped server alive.
main(process.argv.slice(2)).then((code) => process.exit(code));
