#!/usr/bin/env node
const { enableCompileCache } = require('node:module');

enableCompileCache?.();
import('../dist/svcctl.js').then(({ main }) => main());
