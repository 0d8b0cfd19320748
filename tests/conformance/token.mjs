// The suite knows no tokens: this says the server's token for it, in every request that it sends there.
import http from "node:http";
import { createRequire } from "node:module";

const { STOCKADE_URL: url, STOCKADE_TOKEN: token, CONFORMANCE_HOME: home } = process.env;
const { Agent, setGlobalDispatcher } = createRequire(`${home}/package.json`)("undici");
const server = new URL(url);

function added(headers) {
  if (Array.isArray(headers)) {
    return [...headers, "authorization", `Bearer ${token}`];
  }
  const all = headers?.[Symbol.iterator] ? Object.fromEntries(headers) : { ...headers };
  return { ...all, authorization: `Bearer ${token}` };
}

setGlobalDispatcher(
  new Agent().compose((dispatch) => (options, handler) => {
    const there = new URL(options.origin).port === server.port;
    return dispatch(there ? { ...options, headers: added(options.headers) } : options, handler);
  }),
);

const addRequest = http.Agent.prototype.addRequest;
http.Agent.prototype.addRequest = function (request, options, ...rest) {
  if (String(options.port) === server.port) {
    request.setHeader("authorization", `Bearer ${token}`);
  }
  return addRequest.call(this, request, options, ...rest);
};
