// Random CEL expressions of a given type.
import { literals } from './literals.mjs';
import { shown, templates, types } from './templates.mjs';

const lengthMax = 400;
const placeholder = /<([a-z]+(?:\|[a-z]+)*)(?: (\w)=([a-z]+))?>/g;
const spaces = ['  ', '\n', '\t', ' // a comment\n', '\r\n'];

/**
 * @param options.fields expressions by type that read the object, such as `self.name`
 * @param options.depthMax how deep expressions nest
 * @param options.isOneLine whether expressions have no line breaks
 */
export function createGenerator({ random, fields, depthMax = 3, isOneLine = false }) {
  const { pick, chance } = random;

  function leaf(type, scope) {
    const variables = scope.filter((variable) => variable.type === type);
    if (variables.length > 0 && chance(0.6)) return pick(variables).name;
    const objects = scope.filter((variable) => variable.type === 'object');
    const member = { string: 'name', int: 'count', ints: 'list' }[type];
    if (objects.length > 0 && member !== undefined && chance(0.6)) {
      return `${pick(objects).name}.${member}`;
    }
    const [own, constant] = [fields[type] ?? [], literals[type] ?? []];
    const isOwn = own.length > 0 && (constant.length === 0 || chance(0.4));
    return pick(isOwn ? own : constant);
  }

  function expression(type, scope = [], depth = 0) {
    if (depth >= depthMax || templates[type].length === 0 || (depth > 0 && chance(0.12))) {
      return leaf(type, scope);
    }
    // Now and then, an operand has another type.
    if (depth > 0 && chance(0.02)) return expression(pick(types), scope, depth + 1);
    const same = pick(types);
    return pick(templates[type]).replace(placeholder, (_, names, variable, variableType) => {
      const name = pick(names.split('|'));
      const inner = name === 'any' ? pick(types) : name === 'same' ? same : name;
      const more = variable === undefined ? [] : [{ name: variable, type: variableType }];
      return expression(inner, [...scope, ...more], depth + 1);
    });
  }

  /** The same tokens with other blanks between them, where there is a blank outside of quotes. */
  function spaced(text) {
    if (/["'\n]/.test(text.replace(/"[\w .,:/%-]*"/g, ''))) return text;
    return text.replace(/"[^"]*"| /g, (part) =>
      part === ' ' && chance(0.3) ? pick(spaces) : part,
    );
  }

  /** An expression, and its type. */
  function draw() {
    for (;;) {
      const type = pick(types);
      const text = expression(type);
      if (text.length > lengthMax || (isOneLine && text.includes('\n'))) continue;
      return { type, text: !isOneLine && chance(0.05) ? spaced(text) : text };
    }
  }

  return {
    draw,
    /** `count` different expressions. */
    several(count) {
      const made = new Map();
      while (made.size < count) {
        const drawn = draw();
        made.set(drawn.text, drawn);
      }
      return [...made.values()];
    },
  };
}

/** An expression whose value is the text of another expression's value. */
export function shownText({ type, text }) {
  const isOperand = type === 'string' || !/[ \n]/.test(text);
  return shown[type](isOperand ? text : `(${text})`);
}
