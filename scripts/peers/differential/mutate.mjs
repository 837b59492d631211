// Changes objects at random, as their schemas suggest: members are added, removed, and replaced by
// values near the edges of what is valid.

const texts = [
  '',
  'a',
  'A',
  'abc',
  'a.b',
  'a/b',
  'a b',
  '-a',
  'a-',
  'a_b',
  '1',
  '01',
  '-1',
  '0',
  'é',
  'x'.repeat(64),
  'y'.repeat(254),
  'example.com/x',
  'example.com/X_y',
  '10.0.0.9',
  '10.0.0.0/24',
  '::1',
  'fd00::/64',
  '010.0.0.1',
  'https://example.com/x',
  '2024-01-01T00:00:00Z',
  '2024-01-01T00:00:00.000000Z',
  '1Gi',
  '100m',
  '0.5',
  '1e3',
  '50%',
  '101%',
  '1h',
  'Always',
  'None',
  'All',
  '*',
  'Exists',
  'In',
  'default',
  'kubernetes.io/x',
  'system:masters',
  '/a',
  '/a/../b',
  '../x',
  'a: b',
  '\u0000',
  'TCP',
  'IPv4',
  'True',
  'v1',
  'YQ==',
  'not base64!',
];
const integers = [
  0, 1, 2, -1, 10, 53, 80, 100, 101, 255, 1000, 30000, 65535, 65536, 100000, 2147483647, 2147483648,
  -2147483649, 9007199254740992,
];

/**
 * @param options.random draws (see random.mjs)
 * @param options.schemas components of an OpenAPI v3 document
 * @returns `mutate(object, schema)`, which returns a changed copy; `places` and `pickPlace`, which
 *   find the members of an object with their schemas; and `resolved`, which follows references
 */
export function createMutator({ random, schemas }) {
  const resolved = (schema) => {
    let target = schema ?? {};
    for (let hops = 0; hops < 8; hops++) {
      if (target.$ref !== undefined)
        target = schemas[target.$ref.slice(target.$ref.lastIndexOf('/') + 1)] ?? {};
      else if (target.allOf?.length === 1) target = target.allOf[0];
      else break;
    }
    return target;
  };

  function generate(schema, depth) {
    const target = resolved(schema);
    if (target.oneOf !== undefined)
      return random.chance(0.5) ? random.pick(integers) : random.pick(texts);
    if (target.enum !== undefined && random.chance(0.8)) return random.pick(target.enum);
    if (target.type === 'string') return text(target);
    if (target.type === 'integer') return random.pick(integers);
    if (target.type === 'number') return random.pick([...integers, 0.5, 1e300]);
    if (target.type === 'boolean') return random.chance(0.5);
    if (target.type === 'array') {
      const length = random.pick([0, 1, 1, 2]);
      return Array.from({ length }, () => generate(target.items, depth + 1));
    }
    if (target.properties !== undefined) return generateObject(target, depth);
    if (target.additionalProperties !== undefined) {
      const keys = Array.from({ length: random.pick([0, 1, 1, 2]) }, () => random.pick(texts));
      return Object.fromEntries(
        keys.map((key) => [key, generate(target.additionalProperties, depth + 1)]),
      );
    }
    return random.pick([{}, { a: 1 }]);
  }

  const text = ({ format }) => {
    if (format === 'date-time' && random.chance(0.7)) return '2024-01-02T03:04:05Z';
    if (format === 'byte' && random.chance(0.7)) return 'YWJj';
    return random.pick(texts);
  };

  function generateObject(schema, depth) {
    const object = {};
    const share = depth > 4 ? 0.02 : 1.2 / Object.keys(schema.properties).length;
    for (const [name, member] of Object.entries(schema.properties)) {
      const isRequired = schema.required?.includes(name) && random.chance(0.9);
      if (isRequired || random.chance(share)) object[name] = generate(member, depth + 1);
    }
    return object;
  }

  /** All places in a value: the container, its key, and the schema. */
  function places(value, schema, found = [], depth = 0) {
    const target = resolved(schema);
    if (depth > 12) return found;
    if (Array.isArray(value)) {
      value.forEach((item, i) => {
        found.push({ container: value, key: i, schema: target.items });
        places(item, target.items, found, depth + 1);
      });
    } else if (typeof value === 'object' && value !== null) {
      for (const key of Object.keys(value)) {
        if (depth === 0 && (key === 'kind' || key === 'apiVersion')) continue;
        const member = target.properties?.[key] ?? target.additionalProperties;
        found.push({ container: value, key, schema: member });
        places(value[key], member, found, depth + 1);
      }
      const absent = Object.keys(target.properties ?? {}).filter((key) => !(key in value));
      if (absent.length > 0) found.push({ container: value, absent, schema: target });
    }
    return found;
  }

  function change(place) {
    const { container, key, absent, schema } = place;
    if (absent !== undefined) {
      const name = random.pick(absent);
      container[name] = generate(schema.properties[name], 0);
      return;
    }
    const draw = random.below(20);
    if (draw < 5) remove(container, key);
    else if (draw < 6) container[key] = null;
    else if (draw < 7) container[key] = random.pick([0, 'x', true, [], {}, [1], { a: 'b' }]);
    else if (draw < 8 && !Array.isArray(container)) container[`${key}x`] = container[key];
    else if (draw < 10 && Array.isArray(container)) container.push(structuredClone(container[key]));
    else container[key] = generate(schema, 0);
  }

  const remove = (container, key) => {
    if (Array.isArray(container)) container.splice(key, 1);
    else delete container[key];
  };

  /** Weights places so that specs, which have rules, change more often than metadata. */
  function pickPlace(object, schema) {
    const all = places(object, schema);
    for (let attempt = 0; attempt < 3; attempt++) {
      const place = random.pick(all);
      const inMetadata = place.container === object.metadata || place.key === 'metadata';
      if (!inMetadata) return place;
    }
    return random.pick(all);
  }

  return {
    resolved,
    places,
    pickPlace,
    mutate(object, schema) {
      const copy = structuredClone(object);
      const changes = random.pick([1, 1, 1, 2, 3]);
      for (let i = 0; i < changes; i++) change(pickPlace(copy, schema));
      return copy;
    },
  };
}
