#!/usr/bin/env node
import module from 'node:module';

module.enableCompileCache?.();
const { main } = await import('../dist/wheelhouse.js');
// Exit by name: a library's stray timer must not keep a stopped server alive.
process.exit(await main(process.argv.slice(2)));
