// SPDX-License-Identifier: Apache-2.0
#include "pkm_ros2_control/linkage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "pkm_ros2_control/matrices.hpp"

namespace pkm_ros2_control
{
namespace
{
constexpr int kOk = 0, kFolded = 3, kInvalid = 5, kFarOff = 8;  // statuses of the exported function
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kShortest = 1.0 / 256;  // of a way that is too long at once
constexpr double kClose = 1e-12;         // rad or m, and relative: actuators are where they shall be
constexpr int kCorrections = 12;         // of Newton's method, each at most half of the one before

// The way from 0 to 1, in parts that are halved where `part`, given its end, answers kFarOff, and doubled after.
template <typename Part>
int in_parts(Part part)
{
  for (double done = 0.0, step = 1.0; done < 1.0;)
  {
    const int status = part(done + step);
    if (status == kOk)
    {
      done += step;
      step = std::min(2.0 * step, 1.0 - done);
    }
    else if (status == kFarOff && step > kShortest)
      step *= 0.5;
    else
      return status;
  }
  return kOk;
}

void between(const Numbers & from, const Numbers & to, double part, Numbers & found)
{
  for (std::size_t k = 0; k < to.size(); ++k) found[k] = part == 1.0 ? to[k] : from[k] + part * (to[k] - from[k]);
}
}  // namespace

Quantities::Quantities(int n) : position(n, kNaN), velocity(n, kNaN), effort(n, kNaN) {}

Linkage::Linkage(const std::string & library)
: library_("linkage", library, PKM_LINKAGE_TABLE_LAYOUT), table_(static_cast<const pkm_linkage *>(library_.table))
{
  const int n = size();
  if (table_->n_actuators != n) throw std::runtime_error("the linkage has another number of actuators than of joints");
  Numbers home(n), zero(n, 0.0);
  std::copy_n(table_->home_joints, n, home.begin());
  seen_ = {Numbers(table_->n_state), home, zero, Numbers(n * n)};
  table_->home(seen_.state.data());
  asked_ = next_ = kept_ = seen_;
  unit_ = column_ = from_ = towards_ = aim_ = left_ = zero;
  matrix_.resize(n * n);
  if (place_at(home, seen_) != kOk) throw std::runtime_error("the linkage is singular at home");
  asked_ = seen_;
}

// Go to positions of the joints at once; where that fails, the place stays.
int Linkage::place_at(const Numbers & joints, Place & place)
{
  next_.state = place.state;
  next_.joints = joints;
  for (int j = 0; j < size(); ++j)
  {
    std::fill(unit_.begin(), unit_.end(), 0.0);
    unit_[j] = 1.0;
    const int status = table_->to_actuators(
      joints.data(), unit_.data(), next_.state.data(), next_.actuators.data(), column_.data(), nullptr);
    if (status != kOk) return status;
    for (int i = 0; i < size(); ++i) next_.shares[i * size() + j] = column_[i];
  }
  std::swap(place, next_);
  return kOk;
}

// The same along a straight way, in parts where it is long.
int Linkage::lead(const Numbers & joints, Place & place)
{
  from_ = place.joints;
  return in_parts([&](double part) {
    between(from_, joints, part, towards_);
    return place_at(towards_, place);
  });
}

// Newton's method: the joints at which the actuators are where they shall be.
int Linkage::close_in(const Numbers & actuators, Place & place)
{
  const int n = size();
  double before = std::numeric_limits<double>::infinity(), size = 0.0;
  for (const double x : actuators) size = std::max(size, std::fabs(x));
  for (int k = 0; k < kCorrections; ++k)
  {
    double off = 0.0;
    for (int i = 0; i < n; ++i)
    {
      left_[i] = actuators[i] - place.actuators[i];
      off = std::max(off, std::fabs(left_[i]));
    }
    if (off <= kClose * (1.0 + size)) return kOk;
    if (!(off <= 0.5 * before)) return kFarOff;
    before = off;
    towards_ = place.joints;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) towards_[j] += place.shares[i * n + j] * left_[i];
    const int status = place_at(towards_, place);
    if (status != kOk) return status == kFolded ? kFarOff : status;
  }
  return kFarOff;
}

void Linkage::transposed(const Numbers & shares)
{
  for (int i = 0; i < size(); ++i)
    for (int j = 0; j < size(); ++j) matrix_[i * size() + j] = shares[j * size() + i];
}

int Linkage::to_joints(const Quantities & actuators, Quantities & joints)
{
  const int n = size();
  for (auto * one : {&joints.position, &joints.velocity, &joints.effort}) std::fill(one->begin(), one->end(), kNaN);
  for (const double x : actuators.position)
    if (!std::isfinite(x)) return kInvalid;
  from_ = seen_.actuators;
  const int status = in_parts([&](double part) {
    between(from_, actuators.position, part, aim_);
    kept_ = seen_;
    const int found = close_in(aim_, seen_);
    if (found != kOk) std::swap(seen_, kept_);
    return found;
  });
  if (status != kOk) return status;
  joints.position = seen_.joints;
  std::fill(joints.velocity.begin(), joints.velocity.end(), 0.0);
  transposed(seen_.shares);
  add_product(n, n, matrix_.data(), actuators.velocity.data(), 1.0, joints.velocity.data());
  joints.effort = actuators.effort;
  matrix_ = seen_.shares;
  if (!solve(n, 1, matrix_.data(), joints.effort.data())) std::fill(joints.effort.begin(), joints.effort.end(), kNaN);
  return kOk;
}

int Linkage::to_actuators(const Quantities & joints, Quantities & actuators)
{
  const int n = size();
  for (auto * one : {&actuators.position, &actuators.velocity, &actuators.effort})
    std::fill(one->begin(), one->end(), kNaN);
  const auto is_nan = [](double x) { return std::isnan(x); };
  const bool known = !std::all_of(joints.position.begin(), joints.position.end(), is_nan);
  int status = known ? lead(joints.position, asked_) : kOk;
  if (status == kFarOff || status == kFolded)
  {
    asked_ = seen_;  // the joints may have come there on another way
    status = lead(joints.position, asked_);
  }
  if (status != kOk) return status;
  const Place & place = known ? asked_ : seen_;
  if (known) actuators.position = place.actuators;
  std::fill(actuators.effort.begin(), actuators.effort.end(), 0.0);
  add_product(n, n, place.shares.data(), joints.effort.data(), 1.0, actuators.effort.data());
  actuators.velocity = joints.velocity;
  transposed(place.shares);
  if (!solve(n, 1, matrix_.data(), actuators.velocity.data()))
    std::fill(actuators.velocity.begin(), actuators.velocity.end(), kNaN);
  return kOk;
}
}  // namespace pkm_ros2_control
