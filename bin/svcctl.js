#!/usr/bin/env node
const { enableCompileCache } = require('node:module');
const { requireBuild } = require('./require-build.js');

enableCompileCache?.();
import(requireBuild('svcctl.js')).then(({ main }) => main());
