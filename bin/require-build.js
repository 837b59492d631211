const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** The path of a built program; ends the process with one line if nothing has been built. */
exports.requireBuild = function requireBuild(name) {
  const path = join(__dirname, '..', 'dist', name);
  if (existsSync(path)) return path;
  process.stderr.write(`error: ${path} does not exist: build it with \`npm run build\`\n`);
  return process.exit(1);
};
