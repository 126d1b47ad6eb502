"use strict";
// The server draws everything; this sends what is moved, one request at a time, and puts the answer into the page.
const by = id => document.getElementById(id);
let secret = null, busy = false, waiting = null, timer = null;

async function ask(what, content) {
  const answer = await fetch("/" + what, {
    method: "POST",
    headers: {"Content-Type": "application/json", ...(secret ? {"X-Session": secret} : {})},
    body: JSON.stringify(content || {}),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error || "The explorer does not answer.");
  return found;
}

function write(place, text) {
  if (place) place.textContent = text;
}

function show(found) {
  const open = [...document.querySelectorAll("#views details")].map(one => one.open);
  const focused = document.activeElement;
  const name = focused && focused.closest(".control") ? focused.closest(".control").dataset.name : null;
  const type = focused ? focused.type : "";
  const action = focused && focused.dataset ? focused.dataset.do : null;
  if (found.views) {
    by("views").innerHTML = found.views;
    [...document.querySelectorAll("#views details")].forEach((one, at) => { if (open[at]) one.open = true; });
  }
  if (found.controls) {
    const scrolled = by("controls").scrollTop;
    by("controls").innerHTML = found.controls;
    by("controls").scrollTop = scrolled;
    if (name) {  // the keyboard stays where it was
      const same = [...document.querySelectorAll(".control")].find(one => one.dataset.name === name);
      const field = same && [...same.querySelectorAll("input, select")].find(one => one.type === type);
      if (field) field.focus({preventScroll: true});
    }
  }
  if (action && found.views) {
    const same = document.querySelector(`#views [data-do="${action}"]`);
    if (same) same.focus({preventScroll: true});
  }
  by("undo").disabled = !found.can_undo;
  by("redo").disabled = !found.can_redo;
  if (found.running) follow();
}

async function act(what, content, place) {
  if (busy) { waiting = [what, content, place]; return; }
  busy = true;
  write(by("problem"), "");
  by("views").setAttribute("aria-busy", "true");
  write(by("status"), "Computing …");
  try {
    const found = await ask(what, content);
    if (found.error) {
      const control = place && place.closest(".control");
      write(control ? control.querySelector(".message") : place || by("problem"), found.error);
      if (control) control.querySelectorAll("input, select").forEach(one => one.setAttribute("aria-invalid", "true"));
      write(by("status"), "Not taken: see the message.");
    } else {
      show(found);
      write(by("status"), found.status);
      if (what === "save") write(by("save-message"), found.status);
    }
  } catch (error) {
    write(by("problem"), error.message === "Failed to fetch" ? "The explorer is not running any more. Start it again." : error.message);
    write(by("status"), "");
  }
  by("views").removeAttribute("aria-busy");
  busy = false;
  if (waiting) { const next = waiting; waiting = null; act(...next); }
}

function moved(event) {
  const field = event.target, control = field.closest(".control");
  if (!control) return;
  const twin = control.querySelector(field.type === "range" ? "input[type=number]" : "input[type=range]");
  if (twin) twin.value = field.value;
  control.querySelectorAll("[aria-invalid]").forEach(one => one.removeAttribute("aria-invalid"));
  write(control.querySelector(".message"), "");
  if (event.type === "input" && field.type !== "range") return;
  const value = field.type === "checkbox" ? field.checked : field.tagName === "SELECT" ? field.value
    : field.value === "" ? null : Number(field.value);
  clearTimeout(timer);
  timer = setTimeout(() => act("move", {name: control.dataset.name, value}, control.querySelector(".message")), 200);
}

async function follow() {
  const found = await ask("progress").catch(() => null);
  if (!found) return;
  write(by("progress"), found.progress);
  if (found.running) setTimeout(follow, 1000);
  else act("state");
}

function pressed(event) {
  const button = event.target.closest("[data-do]");
  if (!button) return;
  if (button.dataset.do === "everything") act("everything");
  if (button.dataset.do === "point") act("point", {number: Number(button.dataset.point)});
  if (button.dataset.do === "save") act("save", {name: by("save-name").value}, by("save-message"));
}

async function start() {
  const token = location.hash.slice(1);
  history.replaceState(null, "", "/");
  try {
    secret = sessionStorage.getItem("secret");
    if (token) secret = (await ask("session", {token})).secret;
    if (!secret) throw new Error("Open the address that dpmask explore printed; it works once. Start it again for another.");
    sessionStorage.setItem("secret", secret);
  } catch (error) {
    write(by("problem"), error.message);
    write(by("status"), "");
    return;
  }
  act("state");
}

by("controls").addEventListener("input", moved);
by("controls").addEventListener("change", moved);
by("controls").addEventListener("submit", event => event.preventDefault());
by("views").addEventListener("click", pressed);
by("undo").addEventListener("click", () => act("undo"));
by("redo").addEventListener("click", () => act("redo"));
start();
