/**
 * What an agent at work may ask for over REST (docs/spec/agents.md#run-tokens): endpoints that say so where they are declared, and no other
 * handler of a route.
 */

const reachable = new WeakSet<object>();

/** The same handler, which agents may reach. */
export function letAgentsReach<Handler extends object>(handler: Handler): Handler {
  reachable.add(handler);
  return handler;
}

export function isReachableByAgents(handler: object): boolean {
  return reachable.has(handler);
}
