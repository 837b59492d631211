#!/usr/bin/env node
// CommonJS, as `package.json` beside it says: node's loader of ES modules costs a tenth of a start.
const { join } = require('node:path');
const { loadBundle } = require('./load-bundle.js');

const { main } = loadBundle(join(__dirname, '..', 'dist', 'wheelhouse.cjs')).exports;
// Exit by name: a library's stray timer must not keep a stopped server alive.
main(process.argv.slice(2)).then((code) => process.exit(code));
