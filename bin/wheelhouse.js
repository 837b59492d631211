#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import { loadBundle } from './load-bundle.js';

const path = fileURLToPath(new URL('../dist/wheelhouse.cjs', import.meta.url));
// Exit by name: a library's stray timer must not keep a stopped server alive.
process.exit(await loadBundle(path).exports.main(process.argv.slice(2)));
